"""How long trials still need, by how fast their present attempts have come forward so far."""

from collections.abc import Mapping

from controllers.core.actions import Assessment
from controllers.core.model import Progress, Snapshot, TrialId


class TimeLeft:
    """An observer that compares the first report of each attempt with its newest."""

    def __init__(self) -> None:
        self._first: dict[TrialId, tuple[int, Progress]] = {}
        self._left: dict[TrialId, tuple[float, float]] = {}
        self._now = 0.0

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Take in the newest reports; what has ended is forgotten."""
        del assessments, reasons
        self._now = snapshot.now
        first, self._first = self._first, {}
        left, self._left = self._left, {}
        for trial in snapshot.unended:
            if trial.progress is None or not trial.steady:
                continue
            attempt, since = first.get(trial.id, (trial.attempt, trial.progress))
            if attempt != trial.attempt or since.step > trial.progress.step:
                attempt, since = trial.attempt, trial.progress
                left.pop(trial.id, None)
            self._first[trial.id] = attempt, since
            seconds = _left_s(since, trial.progress)
            if seconds is not None:
                self._left[trial.id] = seconds, trial.progress.at
            elif trial.id in left:
                self._left[trial.id] = left[trial.id]

    def of(self, trial: TrialId) -> float | None:
        """Return the seconds that a trial still needs, None where its reports do not tell."""
        if trial not in self._left:
            return None
        seconds, at = self._left[trial]
        return max(0.0, seconds - (self._now - at))


def _left_s(first: Progress, newest: Progress) -> float | None:
    total, steps = newest.steps_total, newest.step - first.step
    if total is None or steps <= 0 or newest.at <= first.at:
        return None
    return max(0, total - newest.step) * (newest.at - first.at) / steps
