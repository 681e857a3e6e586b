"""Rungs: parts of a trial's own training after which it is compared with the others. Pure.

A trial goes on beyond a rung once it is among the best 1 / eta of all that have reached it so far: the rule of ASHA
(Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2), in which a trial that waits
may be let past later, as more of the others turn out to be worse.

ASHA compares one value. We compare two, the best so far and the newest, and a trial stands where the better of its two
ranks puts it. By the best alone, a trial that has begun to overfit goes before one that still improves. By the newest
alone, noise or a bad moment costs a trial that was ahead.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from pydantic import BeforeValidator

from controllers.core.model import Direction, Progress, Trial, TrialId

LAST: Final = 0.85
"""No rung lies beyond this part of a training: what is left is hardly worth a suspension."""


@dataclass(frozen=True, slots=True)
class Level:
    """The first rung, as a part of a training, and how many times as far each further one is; 1 / ``eta`` go on."""

    first: float
    eta: float

    def rungs(self, warmup: float) -> tuple[float, ...]:
        """Return the rungs as parts of a training, rising, of a training that begins with a ``warmup`` of that part."""
        rungs: list[float] = []
        part = self.first
        while (rung := warmup + (1 - warmup) * part) <= LAST:
            rungs.append(rung)
            part *= self.eta
        return tuple(rungs)


def part_made(progress: Progress, usual_steps: float | None) -> float | None:
    """Return the part of its training that a trial has made; None where nobody knows.

    Args:
        progress: its own. Steps count from 0.
        usual_steps: steps in all of the others, for a trial that does not tell its own.
    """
    total = progress.steps_total or usual_steps
    return None if not total or total <= 0 else min(1.0, max(0, progress.step + 1) / total)


class Losses(NamedTuple):
    """How bad a trial is at a rung, so that smaller is better: by its ``best`` value so far, and by its ``newest``."""

    best: float
    newest: float


def _twice(kept: object) -> object:
    """Return both losses of what an older version kept, which knew the best alone."""
    return (kept, kept) if isinstance(kept, int | float) else kept


KeptLosses = Annotated[Losses, BeforeValidator(_twice)]
"""Losses as they are kept over the end of a process."""


def losses_of(progress: Progress, direction: Direction) -> Losses:
    """Return how bad a trial is so far.

    Some trials report before they train. While that first report is the best, it does not count: the newest does.
    """
    best = progress.latest if progress.best == progress.first else progress.best
    sign = 1.0 if direction is Direction.MINIMIZE else -1.0
    return Losses(sign * best, sign * progress.latest)


def with_reached(
    trial: Trial, before: tuple[Losses, ...], rungs: Sequence[float], usual_steps: float | None
) -> tuple[Losses, ...]:
    """Return the losses of ``trial`` at the rungs that it has reached, the first rung first."""
    if trial.progress is None or (part := part_made(trial.progress, usual_steps)) is None:
        return before
    reached = sum(part >= rung for rung in rungs)
    new = max(0, reached - len(before))
    return (*before, *((losses_of(trial.progress, trial.direction),) * new)) if new else before


class Ladder:
    """How the trials compare at each rung, and how many rungs each may go beyond (``passed``).

    At a rung, only those count that may go beyond the rungs before it. A trial that trains on where others leave cores
    idle gets further than that. If it counted, more would be let past, and the sweep would end later.

    Args:
        losses: of each trial that has not ended, at the rungs that it has reached.
        ended: losses of the trials that have, by rung.
        eta: one in so many goes on.
        passed: how many rungs each trial could already go beyond before this look.
    """

    def __init__(
        self,
        losses: Mapping[TrialId, tuple[Losses, ...]],
        ended: Sequence[Sequence[Losses]],
        eta: float,
        passed: Mapping[TrialId, int],
    ) -> None:
        self._losses, self._eta = losses, eta
        self._rungs: list[_Rung] = []
        self.passed = {trial: passed.get(trial, 0) for trial in losses}
        for rung, of_ended in enumerate(ended):
            there = [trial for trial, at_rungs in losses.items() if len(at_rungs) > rung and self.passed[trial] >= rung]
            self._rungs.append(_Rung((*of_ended, *(losses[trial][rung] for trial in there))))
            for trial in there:
                if self.passed[trial] == rung and self.goes_on(trial, rung):
                    self.passed[trial] = rung + 1

    def rank(self, trial: TrialId, rung: int) -> float:
        """Return which part of all that have reached ``rung`` goes before ``trial`` there."""
        of_rung = self._rungs[rung]
        # A trial that was let past just now may stand at a rung where no trial counted when the ladder was made.
        return of_rung.before(self._losses[trial][rung]) / max(1, len(of_rung))

    def goes_on(self, trial: TrialId, rung: int) -> bool:
        """Whether ``trial`` is among the best of all that have reached ``rung``."""
        of_rung = self._rungs[rung]
        return of_rung.before(self._losses[trial][rung]) < math.floor(len(of_rung) / self._eta)


class _Rung:
    """All that have reached a rung, in order."""

    def __init__(self, reached: Sequence[Losses]) -> None:
        self._best = sorted(losses.best for losses in reached)
        self._newest = sorted(losses.newest for losses in reached)
        self._places = sorted(map(self._place, reached))

    def __len__(self) -> int:
        return len(self._places)

    def before(self, losses: Losses) -> int:
        """Return how many go before one with ``losses``."""
        return bisect_left(self._places, self._place(losses))

    def _place(self, losses: Losses) -> tuple[int, int]:
        """Return the better of the two ranks, then their sum."""
        ranks = bisect_left(self._best, losses.best), bisect_left(self._newest, losses.newest)
        return min(ranks), sum(ranks)
