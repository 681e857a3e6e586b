"""What other tools do with the same sweeps: successive halving without waiting (ASHA), and the median rule.

Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2; Golovin et al., Google
Vizier, KDD 2017, section 3.2.1. Both compare best values so far. Trials of ASHA wait with their checkpoint, as it is
published; a trial that the median rule ends is over.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.train_promote.sweeps import START, End, noise_of, whole_makespan
from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats

STARTUP: Final = 5
"""Trials that must have come as far before the median rule ends any there: Optuna's default."""
FIRST: Final = 4
"""The part at which the median rule begins to look, 8 %: each trial may have a slow start."""


@dataclass(frozen=True, slots=True)
class Asha:
    """One in ``eta`` goes on at each rung; the first is at ``first`` parts."""

    first: int
    eta: float

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"ASHA, eta {self.eta:g}, first rung {100 * self.first // PARTS} %"

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
                return _end(best, at[-1], now, slots)
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
    def name(self) -> str:
        """What it is called in tables."""
        return f"median rule, from {100 * FIRST // PARTS} % on"

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
        return _end(best, ended, now, slots)


def _end(best: Floats, ended: Sequence[int], now: float, slots: int) -> End:
    ends = best[:, -1]
    scale = max(1e-12, float(np.median(ends) - ends.min()))
    regret = float(100 * (ends[list(ended)].min() - ends.min()) / scale)
    return End(1.0, now / whole_makespan(len(best), slots), regret)


RULES: Final[tuple[Asha | Median, ...]] = (
    *(Asha(first, eta) for eta in (1.5, 2.0, 3.0, 4.0) for first in (2, 4, 8, 12)),
    Median(),
)


def lost(rule: Asha | Median, values: Floats, slots: int) -> tuple[float, bool, bool]:
    """Return the makespan, whether more than 1 % was lost, and whether more than that and than the noise of a value."""
    ends = values.min(axis=1)
    noise = 100 * noise_of(values) / max(1e-12, float(np.median(ends) - ends.min()))
    end = rule.run(values, slots)
    return end.makespan, end.regret > 1, end.regret > max(1.0, noise)
