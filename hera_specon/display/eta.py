"""When a sweep will probably end, from the steps left and the pace of late. Pure."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.core.model import Snapshot, Trial, TrialId

WINDOW = 120.0
"""Seconds that a pace looks back: long enough to smooth, short enough to follow a new share."""

Mark = tuple[float, int]


@dataclass(frozen=True, slots=True)
class Pace:
    """Where each trial was when: pairs of time (seconds) and step, oldest first."""

    marks: Mapping[TrialId, tuple[Mark, ...]] = field(default_factory=dict)

    def after(self, snapshot: Snapshot) -> "Pace":
        """Return the pace with ``snapshot`` taken in; marks older than the window are dropped."""
        seen = {trial.id: (snapshot.now, trial.progress.step) for trial in snapshot.trials if trial.progress}
        oldest = snapshot.now - WINDOW
        return Pace({trial: _extended(self.marks.get(trial, ()), mark, oldest) for trial, mark in seen.items()})

    def steps_per_second(self, trial: TrialId) -> float | None:
        """Return the trial's pace over the window, None while it has not moved on within it."""
        marks = self.marks.get(trial, ())
        if len(marks) < 2:  # noqa: PLR2004 - a pace needs two points
            return None
        (before, first), (now, last) = marks[0], marks[-1]
        return (last - first) / (now - before) if last > first and now > before else None


def _extended(marks: tuple[Mark, ...], mark: Mark, oldest: float) -> tuple[Mark, ...]:
    return (*(old for old in marks if old[0] >= oldest), mark)


def average_pace(snapshot: Snapshot) -> Pace:
    """Return the pace of each trial at work over all its time so far: what one look at a sweep can tell."""
    at_work = [trial for trial in snapshot.trials if trial.live and trial.progress]
    return Pace({t.id: ((t.submitted_at, 0), (snapshot.now, t.progress.step)) for t in at_work if t.progress})


def seconds_left(pace: Pace, snapshot: Snapshot) -> float | None:
    """Return the seconds until the last trial ends, if every pace stays as it is.

    A trial of unknown pace or length is taken to be like the median of those known, so the
    figure is a lower bound while trials wait for a place. None while nothing is known.
    """
    open_trials = [trial for trial in snapshot.trials if not trial.phase.ended]
    if not open_trials:
        return 0.0
    typical = _typical(pace, snapshot)
    left = [_left(trial, pace.steps_per_second(trial.id), typical) for trial in open_trials]
    known = [value for value in left if value is not None]
    return max(known) if len(known) == len(left) else None


def _typical(pace: Pace, snapshot: Snapshot) -> tuple[float | None, float | None]:
    """Return the median pace and the median length (steps) of the trials that have one."""
    paces = [rate for trial in snapshot.trials if (rate := pace.steps_per_second(trial.id)) is not None]
    totals = [t.progress.steps_total for t in snapshot.trials if t.progress and t.progress.steps_total]
    return (statistics.median(paces) if paces else None, statistics.median(totals) if totals else None)


def _left(trial: Trial, rate: float | None, typical: tuple[float | None, float | None]) -> float | None:
    total = (trial.progress.steps_total if trial.progress else None) or typical[1]
    rate = rate or typical[0]
    if rate is None or total is None:
        return None
    return max(0.0, total - (trial.progress.step if trial.progress else 0)) / rate
