"""What other tools do with the same sweeps: successive halving without waiting (ASHA), and the median rule.

Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2; Golovin et al., Google
Vizier, KDD 2017, section 3.2.1. Both compare best values so far. Trials of ASHA wait with their checkpoint, as it is
published; a trial that the median rule ends is over. Other rules are those of ``stopping_rules`` and ``pausing_rules``.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from benchmarks.train_promote.pausing_rules import PAUSING_RULES
from benchmarks.train_promote.stopping_rules import STOPPING_RULES
from benchmarks.train_promote.sweeps import START, End, end_of, noise_of
from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats

STARTUP: Final = 5
"""Trials that must have come as far before the median rule ends any there: Optuna's default."""
FIRST: Final = 4
"""The part at which the median rule begins to look, 8 %: each trial may have a slow start."""


class Rule(Protocol):
    """Ends a sweep by itself."""

    @property
    def line(self) -> str:
        """What it is called in tables, but for its setting."""

    @property
    def setting(self) -> str:
        """What differs along its line."""

    def run(self, values: Floats, slots: int) -> End:
        """Return what a sweep of ``values`` (losses by trial and part) comes to on so many ``slots``."""


@dataclass(frozen=True, slots=True)
class Asha:
    """One in ``eta`` goes on at each rung; the first is at ``first`` parts."""

    first: int
    eta: float

    @property
    def line(self) -> str:
        """What it is called in tables, but for its setting."""
        return f"ASHA, eta {self.eta:g}"

    @property
    def setting(self) -> str:
        """What differs along its line."""
        return f"first rung {100 * self.first // PARTS} %"

    def rungs(self) -> list[int]:
        """Return the rungs in parts, rising; the last is the end."""
        found, part = [], float(self.first)
        while part <= 0.85 * PARTS:
            found.append(round(part))
            part *= self.eta
        return [*found, PARTS]

    def run(self, values: Floats, slots: int) -> End:
        """Return what a sweep comes to."""
        best, rungs = np.minimum.accumulate(values, axis=1), self.rungs()
        at: list[list[int]] = [[] for _ in rungs]
        promoted: list[set[int]] = [set() for _ in rungs]
        running: list[tuple[float, int, int]] = []
        now, new = 0.0, list(range(len(values)))
        while True:
            while len(running) < slots:
                step = self._next(at, promoted, best, rungs) or ((new.pop(0), 0) if new else None)
                if step is None and not running and not at[-1]:
                    step = self._last(at, best, rungs)
                if step is None:
                    break
                trial, rung = step
                made = rungs[rung - 1] if rung else 0
                heapq.heappush(running, (now + START + (rungs[rung] - made) / PARTS, trial, rung))
            if not running:
                return end_of(values, at[-1], now, slots)
            now, trial, rung = heapq.heappop(running)
            at[rung].append(trial)

    def _next(
        self, at: Sequence[Sequence[int]], promoted: Sequence[set[int]], best: Floats, rungs: Sequence[int]
    ) -> tuple[int, int] | None:
        """Return the trial that goes on, and to which rung: from the highest rung that has one."""
        for rung in reversed(range(len(rungs) - 1)):
            order = sorted(at[rung], key=lambda trial: best[trial, rungs[rung] - 1])
            for trial in order[: int(len(order) / self.eta)]:
                if trial not in promoted[rung]:
                    promoted[rung].add(trial)
                    return trial, rung + 1
        return None

    def _last(self, at: Sequence[Sequence[int]], best: Floats, rungs: Sequence[int]) -> tuple[int, int]:
        """Return the best of the highest rung where nobody would come to the end, and its next rung."""
        rung = max(rung for rung in range(len(rungs)) if at[rung])
        return min(at[rung], key=lambda trial: best[trial, rungs[rung] - 1]), rung + 1


@dataclass(frozen=True, slots=True)
class Median:
    """Ends a trial whose best value is worse than the median of all that have come as far."""

    @property
    def line(self) -> str:
        """What it is called in tables, but for its setting."""
        return "median rule"

    @property
    def setting(self) -> str:
        """What differs along its line."""
        return f"from {100 * FIRST // PARTS} % on"

    def run(self, values: Floats, slots: int) -> End:
        """Return what a sweep comes to."""
        best = np.minimum.accumulate(values, axis=1)
        running: list[tuple[float, int, int]] = []
        now, new, ended = 0.0, list(range(len(values))), list[int]()
        there: list[list[float]] = [[] for _ in range(PARTS + 1)]
        while new or running:
            while new and len(running) < slots:
                heapq.heappush(running, (now + START + 1 / PARTS, new.pop(0), 1))
            now, trial, part = heapq.heappop(running)
            loss = float(best[trial, part - 1])
            others = there[part]
            over = part >= FIRST and len(others) >= STARTUP and loss > float(np.median(others))
            others.append(loss)
            if part == PARTS:
                ended.append(trial)
            elif not over:
                heapq.heappush(running, (now + 1 / PARTS, trial, part + 1))
        return end_of(values, ended, now, slots)


RULES: Final[tuple[Rule, ...]] = (
    *(Asha(first, eta) for eta in (1.5, 2.0, 3.0, 4.0) for first in (2, 4, 8, 12)),
    Median(),
    *PAUSING_RULES,
    *STOPPING_RULES,
)
"""All were fixed before any of them was measured."""


def lost(rule: Rule, values: Floats, slots: int) -> tuple[float, bool, bool]:
    """Return the makespan, whether more than 1 % was lost, and whether more than that and than the noise of a value."""
    ends = values.min(axis=1)
    noise = 100 * noise_of(values) / max(1e-12, float(np.median(ends) - ends.min()))
    end = rule.run(values, slots)
    return end.makespan, end.regret > 1, end.regret > max(1.0, noise)


def makespan_at(risk: float, points: Sequence[tuple[float, float]]) -> float | None:
    """Return how long a rule takes at a risk, between its settings (makespan and risk of each); None beyond them.

    The settings that another of them beats in both are left out, and straight lines connect those that remain.
    """
    kept = [one for one in points if not any(_beats(other, one) for other in points)]
    rising = sorted({(at, makespan) for makespan, at in kept})
    risks, makespans = zip(*rising, strict=True)
    if not risks[0] <= risk <= risks[-1]:
        return None
    return float(np.interp(risk, risks, makespans))


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]
