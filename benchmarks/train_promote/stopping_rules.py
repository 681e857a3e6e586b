"""Rules that end a trial where it falls behind, as Ray Tune and Optuna have them. What has ended never comes back.

Each does what its library does, to the same trial at the same report: ``tests/benchmarks/test_stopping_rules.py`` holds
those of Optuna to its own pruners. A trial reports after each part, the first report is of step 1, and nobody asks at
the end. All compare the value that was reported, not the best so far, unless told otherwise.
"""

import heapq
import math
import zlib
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import numpy as np

from benchmarks.train_promote.sweeps import START, End, end_of
from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats


class Judge(Protocol):
    """Says of each report whether its trial is over."""

    def over(self, trial: int, part: int) -> bool:
        """Return whether the trial that has just made ``part`` parts ends there."""

    def completes(self, trial: int) -> None:
        """Note that a trial has trained to its end."""


def stopped(trials: int, slots: int, judge: Judge) -> tuple[list[int], float]:
    """Return how many parts each trial made under ``judge``, and when all was over, in trials."""
    running: list[tuple[float, int]] = []
    made, now, new = [0] * trials, 0.0, list(range(trials))
    while new or running:
        while new and len(running) < slots:
            heapq.heappush(running, (now + START + 1 / PARTS, new.pop(0)))
        now, trial = heapq.heappop(running)
        made[trial] += 1
        if made[trial] == PARTS:
            judge.completes(trial)
        elif not judge.over(trial, made[trial]):
            heapq.heappush(running, (now + 1 / PARTS, trial))
    return made, now


@dataclass(frozen=True, slots=True)
class Stopping:
    """A rule that a judge stands for, made for the values of each sweep."""

    line: str
    setting: str
    judge: Callable[[Floats], Judge]

    def run(self, values: Floats, slots: int) -> End:
        """Return what a sweep comes to."""
        made, now = stopped(len(values), slots, self.judge(values))
        return end_of(values, [trial for trial, parts in enumerate(made) if parts == PARTS], now, slots)


class RayAsha:
    """Ray Tune's ``ASHAScheduler`` (``AsyncHyperBandScheduler`` with one bracket).

    A trial goes on from a rung if its value is no worse than the best ``1 / eta`` of those that were there before it.
    """

    def __init__(self, values: Floats, first: int, eta: int) -> None:
        self.values, self.eta = values, eta
        rungs = int(math.log(PARTS / first) / math.log(eta)) + 1
        self.at: dict[int, list[float]] = {first * eta**rung: [] for rung in range(rungs)}

    def over(self, trial: int, part: int) -> bool:
        """See ``Judge``."""
        if part not in self.at:
            return False
        before, reward = self.at[part], -float(self.values[trial, part - 1])
        behind = bool(before) and bool(reward < np.percentile(before, (1 - 1 / self.eta) * 100))
        before.append(reward)
        return behind

    def completes(self, trial: int) -> None:
        """See ``Judge``."""


class OptunaHalving:
    """Optuna's ``SuccessiveHalvingPruner``: goes on from a rung if it is in the best ``1 / eta`` there, itself counted.

    Where ``first`` is None (Optuna's ``min_resource="auto"``), nothing ends before a trial has completed; the first
    rung is then a hundredth of its steps, at least one.
    """

    def __init__(self, values: Floats, first: int | None, eta: int) -> None:
        self.values, self.first, self.eta = values, first, eta
        self.at: list[list[float]] = []
        self.passed = [0] * len(values)

    def over(self, trial: int, part: int) -> bool:
        """See ``Judge``."""
        if self.first is None:
            return False
        value = float(self.values[trial, part - 1])
        while part >= self.first * self.eta ** self.passed[trial]:
            rung = self.passed[trial]
            if rung == len(self.at):
                self.at.append([])
            there = self.at[rung]
            insort(there, value)
            if value > there[max(len(there) // self.eta - 1, 0)]:
                return True
            self.passed[trial] += 1
        return False

    def completes(self, trial: int) -> None:
        """See ``Judge``."""
        del trial
        self.first = self.first or max(PARTS // 100, 1)


class OptunaHyperband:
    """Optuna's ``HyperbandPruner``: each bracket is a successive halving of its own, with a first rung of its own.

    A trial's bracket is drawn from the name of the study and its number. Where ``known`` is false (Optuna's
    ``max_resource="auto"``), nothing ends before a trial has completed.
    """

    def __init__(self, values: Floats, first: int, eta: int, *, known: bool = True) -> None:
        self.known = known
        brackets = math.floor(math.log(PARTS / first, eta)) + 1
        left = [brackets - 1 - bracket for bracket in range(brackets)]
        shares = [math.ceil(brackets * eta**rungs / (rungs + 1)) for rungs in left]
        dealt = [bracket for bracket, share in enumerate(shares) for _ in range(share)]
        name = study_of(values)
        self.bracket = [dealt[zlib.crc32(f"{name}_{trial}".encode()) % len(dealt)] for trial in range(len(values))]
        self.brackets = [OptunaHalving(values, first * eta**bracket, eta) for bracket in range(brackets)]

    def over(self, trial: int, part: int) -> bool:
        """See ``Judge``."""
        return self.known and self.brackets[self.bracket[trial]].over(trial, part)

    def completes(self, trial: int) -> None:
        """See ``Judge``."""
        del trial
        self.known = True


class OptunaMedian:
    """Optuna's ``MedianPruner``: ends a trial whose best is worse than the median of completed ones at its step."""

    def __init__(self, values: Floats, startup: int = 5, warmup: int = 0) -> None:
        self.values, self.best = values, np.minimum.accumulate(values, axis=1)
        self.startup, self.warmup = startup, warmup
        self.completed: list[int] = []
        self.medians = np.full(PARTS, np.inf)

    def over(self, trial: int, part: int) -> bool:
        """See ``Judge``."""
        begun = len(self.completed) >= self.startup and part >= self.warmup
        return begun and bool(self.best[trial, part - 1] > self.medians[part - 1])

    def completes(self, trial: int) -> None:
        """See ``Judge``."""
        self.completed.append(trial)
        self.medians = np.median(self.values[self.completed], axis=0)


def study_of(values: Floats) -> str:
    """Return a name of a study for the sweep of ``values``: sweeps differ in how they deal trials to brackets."""
    return f"no-name-{zlib.crc32(values.tobytes())}"


class _ByRungs(Protocol):
    def __call__(self, values: Floats, first: int, eta: int) -> Judge: ...


def _settings(line: str, judge: _ByRungs) -> Iterator[Stopping]:
    """Yield a rule under each setting of ``eta`` and of the first rung."""
    for eta in (2, 3, 4):
        for first in (1, 4, 8):
            at = partial(judge, first=first, eta=eta)
            yield Stopping(f"{line}, eta {eta}", f"first rung {100 * first // PARTS} %", at)


STOPPING_RULES: Final[tuple[Stopping, ...]] = (
    *_settings("Ray ASHA", RayAsha),
    Stopping("Optuna halving", "by default", partial(OptunaHalving, first=None, eta=4)),
    *_settings("Optuna halving", OptunaHalving),
    Stopping("Optuna Hyperband", "by default", partial(OptunaHyperband, first=1, eta=3, known=False)),
    *_settings("Optuna Hyperband", OptunaHyperband),
    Stopping("Optuna median", "by default", OptunaMedian),
    Stopping("Optuna median", "from 8 % on", partial(OptunaMedian, warmup=4)),
    Stopping("Optuna median", "from 16 % on", partial(OptunaMedian, warmup=8)),
)
