"""What a search is told of the trials of a sweep, as it becomes known. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from controllers.core.model import Phase, Point, Snapshot, Trial, TrialId
from controllers.search.spec import SearchSpec


@dataclass(frozen=True, slots=True)
class TrialNews:
    """A trial that began with ``point``, or, where ``over``, came to ``best``: its best value, None where it failed."""

    trial: TrialId
    point: Point | None = None
    over: bool = False
    best: float | None = None


class Ledger:
    """What has been told of the trials of one search, so that each look tells only what is new."""

    def __init__(self, sweep: str, search: str, spec: SearchSpec) -> None:
        self._key = (sweep, search)
        self.spec = spec
        self.begun: set[TrialId] = set()
        self._over: set[TrialId] = set()

    def others(self, snapshot: Snapshot) -> list[Trial]:
        """Return the trials that search in the same words, of the same sweep."""
        return [trial for trial in snapshot.trials if (trial.sweep, trial.search) == self._key]

    def news(self, trials: list[Trial], points: Mapping[TrialId, Point]) -> list[TrialNews]:
        """Return which of ``trials`` have begun or ended since the last time."""
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
                self._over.add(trial.id)
                told.append(TrialNews(trial.id, over=True, best=_best(trial)))
        return told


def drawn_before(trials: list[Trial], points: Mapping[TrialId, Point]) -> int:
    """Return how many of ``trials`` have begun: a study that is built again must not draw their points again."""
    return sum(trial.id in points or bool(trial.parameters) for trial in trials)


def _best(trial: Trial) -> float | None:
    """Return the best value that a trial came to, also where it was stopped; None where it failed."""
    best = None if trial.progress is None else trial.progress.best
    return None if best is None or not math.isfinite(best) or trial.phase is Phase.FAILED else best
