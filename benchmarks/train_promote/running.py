"""One sweep of a family: what its decisions saw, to train by, and what a promise came to, to judge by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.train_promote.families import Families
from benchmarks.train_promote.fixed_rules import RULES, lost
from benchmarks.train_promote.sweeps import Seen, Sweep
from controllers.policies.promote.odds import OddsModel, read
from controllers.policies.promote.promised import bound_of

LEAST: Final = 0.03
"""Sweeps of a training end once so much is left: what comes after matters to no promise."""
EVERY: Final = 6
_FROM: Final = 9000
"""Sweeps for judging are of numbers of their own."""


@dataclass(frozen=True)
class Judgement:
    """By promise: makespan (a part of that of training everything) and regret in percent; and the noise of a value.

    Regret and noise are in percent of the gap between the sweep's best and its median trial, both by the best value
    that a trial reported.
    """

    makespans: tuple[float, ...]
    regrets: tuple[float, ...]
    noise: float

    def numbers(self) -> list[float]:
        """Return by promise: makespan, whether more than 1 % was lost, and whether more than that and the noise."""
        return [
            number
            for makespan, regret in zip(self.makespans, self.regrets, strict=True)
            for number in (makespan, float(regret > 1), float(regret > max(1.0, self.noise)))
        ]


def judged(trials: int, slots: int, promises: Sequence[float], wanted: tuple[str, int]) -> Judgement:
    """Return what the promises come to in the sweep of a family (its name and a number)."""
    family, number = wanted
    values = Families().sweep(family, _FROM + number, trials)
    bounds = [bound_of(promise, trials) for promise in promises]
    # Four at a time that share all slots: the others' cores would be idle.
    outcome = Sweep(values, slots, read().of, 4 if slots > 4 else None).run(min(bounds))  # noqa: PLR2004
    ends = [outcome.at(bound) for bound in bounds]
    return Judgement(tuple(end.makespan for end in ends), tuple(end.regret for end in ends), outcome.noise)


def seen_in(families: Families, model: OddsModel, wanted: tuple[str, int]) -> Sequence[Seen]:
    """Return what decisions of a sweep saw; half of all sweeps have 100 trials, the others 12 to 160."""
    family, number = wanted
    chance = np.random.default_rng([number, len(family)])
    trials = 100 if number % 2 else int(np.exp(chance.uniform(np.log(12), np.log(160))))
    slots = int(chance.choice([4, 16]))
    most_active = 4 if slots > 4 and chance.random() < 0.5 else None  # noqa: PLR2004 - idle cores, half of the time
    values = families.sweep(family, number, trials)
    return Sweep(values, slots, model.of, most_active).run(LEAST, every=EVERY).seen


def by_fixed_rules(trials: int, slots: int, wanted: tuple[str, int]) -> list[tuple[float, bool, bool]]:
    """Return what each of ``RULES`` comes to in the sweep of a family (its name and a number)."""
    family, number = wanted
    values = Families().sweep(family, _FROM + number, trials)
    return [lost(rule, values, slots) for rule in RULES]
