"""The trials as policies see them: what their world shows, with what their metrics tell of their training."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress, count
from operator import is_not

from controllers.core.model import Progress, Sample, Trial, TrialId
from controllers.core.progress import merge


class Sight:
    """Looks at the trials of one sweep again and again. A look costs what is new: most trials are as they were.

    Args:
        progress: What is known of each trial's training so far; kept up to date.
    """

    def __init__(self, progress: Mapping[TrialId, Progress]) -> None:
        self.progress = dict(progress)
        self._shown: Sequence[Trial] = ()
        self._ids: list[TrialId] = []
        self._samples: Sequence[Sample | None] = ()
        self._informed: list[Trial] = []
        self._last: dict[TrialId, tuple[Trial, Sample | None, Trial]] = {}

    def look(self, shown: Sequence[Trial], samples: Mapping[TrialId, Sample]) -> tuple[Trial, ...]:
        """Return ``shown`` with their progress, each the same object as last time where nothing has come in since.

        Args:
            shown: The trials as their world shows them, in any order: the same object while nothing of it has changed.
            samples: The newest sample of each trial that has one, likewise.
        """
        # Thousands of trials are compared at every tick, so by what Python does without a loop of its own.
        news = {*compress(count(), map(is_not, shown, self._shown)), *range(len(self._shown), len(shown))}
        for place in sorted(news):
            self._ids[place : place + 1] = [shown[place].id]
        del self._ids[len(shown) :]
        newest = list(map(samples.get, self._ids))
        news.update(compress(count(), map(is_not, newest, self._samples)))
        for place in sorted(news):
            self._informed[place : place + 1] = [self._with_progress(shown[place], newest[place])]
        del self._informed[len(shown) :]
        self._shown, self._samples = tuple(shown), newest
        return tuple(self._informed)

    def _with_progress(self, trial: Trial, sample: Sample | None) -> Trial:
        last = self._last.get(trial.id)
        if last is not None and last[0] is trial and last[1] is sample:
            return last[2]
        merged = None if sample is None else merge(self.progress.get(trial.id), sample, trial.direction)
        if merged is not None:
            self.progress[trial.id] = merged
        progress = self.progress.get(trial.id)
        same = last is not None and last[0] is trial and last[2].progress is progress
        informed = last[2] if last is not None and same else replace(trial, progress=progress)
        self._last[trial.id] = trial, sample, informed
        return informed
