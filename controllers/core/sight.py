"""The trials as policies see them: what their world shows, with what their metrics tell of their training."""

import math
from collections.abc import Mapping, Sequence
from itertools import compress, count
from operator import is_not, itemgetter

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
        self._sampled: list[TrialId] = []
        self._samples: list[Sample] = []
        self._last: dict[TrialId, tuple[Trial, Sample | None]] = {}
        self._informed: dict[TrialId, Trial] = {}
        self._unended: dict[TrialId, Trial] = {}
        self._in_order = True

    @property
    def unended(self) -> tuple[Trial, ...]:
        """The trials of the last look that have not ended, by name."""
        return tuple(self._unended.values())

    def look(self, shown: Sequence[Trial], samples: Mapping[TrialId, Sample]) -> tuple[Trial, ...]:
        """Return ``shown`` with their progress, by name, each the same object as last time if nothing of it is new.

        Args:
            shown: The trials as their world shows them: each the same object while nothing of it has changed.
            samples: The newest sample of each trial that has one, likewise.
        """
        # Thousands of trials are compared at every tick: only ``map`` and ``compress`` are fast enough for that.
        news = {*compress(count(), map(is_not, shown, self._shown)), *range(len(self._shown), len(shown))}
        for place in sorted(news):
            self._ids[place : place + 1] = [shown[place].id]
        del self._ids[len(shown) :]
        for place in news:
            self._inform(shown[place], samples.get(self._ids[place]))
        if not self._in_order:
            self._informed = dict(sorted(self._informed.items(), key=itemgetter(0)))
            self._unended = dict(sorted(self._unended.items(), key=itemgetter(0)))
            self._in_order = True
        for gone in self._informed.keys() - set(self._ids) if len(self._informed) > len(shown) else ():
            del self._informed[gone], self._last[gone]
            self._unended.pop(gone, None)
        for name in self._newly_sampled(samples):
            if name in self._last:
                self._inform(self._last[name][0], samples[name])
        self._shown = tuple(shown)
        return tuple(self._informed.values())

    def _newly_sampled(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialId]:
        """Return the trials whose sample is not that of the last look."""
        names, newest, known = list(samples), list(samples.values()), len(self._sampled)
        if names[:known] == self._sampled:
            new = [*compress(names, map(is_not, newest, self._samples)), *names[known:]]
        else:  # a source may tell in any order, and of some trials only
            before = dict(zip(self._sampled, self._samples, strict=True))
            new = [name for name, sample in samples.items() if before.get(name) is not sample]
        self._sampled, self._samples = names, newest
        return new

    def _inform(self, trial: Trial, sample: Sample | None) -> None:
        shown, read = self._last.get(trial.id, (None, None))
        if shown is trial and read is sample:
            return  # The world showed it in another place.
        self._last[trial.id] = trial, sample
        merged = None if sample is None else merge(self.progress.get(trial.id), sample, trial.direction)
        if merged is not None:
            self.progress[trial.id] = merged
        elif sample is not None:
            # It began again, and has no finite value yet.
            self.progress.pop(trial.id, None)
        progress = self.progress.get(trial.id)
        diverged = sample is not None and _diverged(sample, progress)
        known = None if shown is not trial else self._informed[trial.id]
        if known is None or known.progress is not progress or known.diverged is not diverged:
            self._note(trial.with_progress(progress, diverged=diverged))

    def _note(self, trial: Trial) -> None:
        if trial.phase.ended:
            self._in_order &= trial.id in self._informed
            self._unended.pop(trial.id, None)
        else:
            self._in_order &= trial.id in self._unended
            self._unended[trial.id] = trial
        self._informed[trial.id] = trial


def _diverged(sample: Sample, progress: Progress | None) -> bool:
    """Whether the newest value is NaN or infinite; what is reported before the first step is not of the training."""
    if math.isfinite(sample.value) or sample.step < 1:
        return False
    return progress is None or (sample.at, sample.step) >= (progress.at, progress.step)
