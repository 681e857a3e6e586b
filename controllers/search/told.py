"""What a search is told of the trials of a sweep, as it becomes known. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controllers.core.aims import Aims
from controllers.core.model import Phase, Point, Progress, Snapshot, Trial, TrialId
from controllers.search.spec import SearchSpec, read_search

PATIENCE_S: Final = 30.0
"""Seconds that the last metrics of a trial may take from its end to MLflow and from there to us."""


@dataclass(frozen=True, slots=True)
class TrialNews:
    """A trial that began with ``point``, or, where ``over``, what it came to.

    That is a value for each objective, none where it failed, and by how much it breaks each constraint (0 or below
    where it keeps it).
    """

    trial: TrialId
    point: Point | None = None
    over: bool = False
    values: tuple[float, ...] = ()
    violations: tuple[float, ...] = ()


class Ledger:
    """What has been told of the trials of one search, so that each look tells only what is new.

    Args:
        trial: One of them: all count by what its sweep wants, whatever they say themselves.

    Raises:
        SearchError: Its search makes no sense.
    """

    def __init__(self, trial: Trial) -> None:
        self._key = (trial.sweep, trial.search)
        self._aims = trial.aims
        self.directions = (trial.direction, *(objective.direction for objective in trial.aims.further))
        self.spec: SearchSpec = read_search(trial.search)
        self.begun: set[TrialId] = set()
        self._over: set[TrialId] = set()
        self._ended_at: dict[TrialId, float] = {}

    @property
    def constrained(self) -> bool:
        """Whether models must keep constraints."""
        return bool(self._aims.constraints)

    def others(self, snapshot: Snapshot) -> list[Trial]:
        """Return the trials that search in the same words, of the same sweep."""
        return [trial for trial in snapshot.trials if (trial.sweep, trial.search) == self._key]

    def news(self, trials: list[Trial], points: Mapping[TrialId, Point], now: float) -> list[TrialNews]:
        """Return which of ``trials`` have begun or ended since the last time; ``now`` is of the sweep's clock."""
        told: list[TrialNews] = []
        for trial in trials:
            if trial.id in self._over:
                continue
            if trial.id not in self.begun:
                point = points.get(trial.id) or self.spec.point_of(trial.parameters)
                if point is None:
                    continue  # not begun, or begun with values of somebody else's
                self.begun.add(trial.id)
                told.append(TrialNews(trial.id, point))
            if trial.phase.ended:
                came_to = _came_to(trial, self._aims)
                if not came_to.values and self._may_yet_tell(trial, now):
                    continue
                self._over.add(trial.id)
                told.append(came_to)
        return told

    def _may_yet_tell(self, trial: Trial, now: float) -> bool:
        """Return whether metrics that a trial logs once, at its end, may still be on their way."""
        if not self._aims or trial.phase is Phase.FAILED:
            return False
        return now < self._ended_at.setdefault(trial.id, now) + PATIENCE_S


def drawn_before(trials: list[Trial], points: Mapping[TrialId, Point]) -> int:
    """Return how many of ``trials`` have begun: a study that is built again must not draw their points again."""
    return sum(trial.id in points or bool(trial.parameters) for trial in trials)


def _came_to(trial: Trial, aims: Aims) -> TrialNews:
    """Return what a trial that is over came to, also where it was stopped.

    Of a single objective its best value counts. Of several the newest of each: the best ones may be of different
    moments, and so of no model.
    """
    progress = trial.progress
    if progress is None or trial.phase is Phase.FAILED:
        return TrialNews(trial.id, over=True)
    logged = dict(progress.also)
    values, violations = _values(trial, progress, aims, logged), aims.violations(logged)
    if violations is None or not all(map(math.isfinite, values)):
        return TrialNews(trial.id, over=True)
    return TrialNews(trial.id, over=True, values=values, violations=violations)


def _values(trial: Trial, progress: Progress, aims: Aims, logged: Mapping[str, float]) -> tuple[float, ...]:
    if not aims.further:
        return (progress.best,)
    first = math.nan if trial.diverged else progress.latest
    return (first, *(logged.get(objective.metric, math.nan) for objective in aims.further))
