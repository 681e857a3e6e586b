"""What the trials of a run on this machine journal: the truth of how they fare, whatever MLflow has of it yet.

It is read as it grows: an MLflow that is slow, or still starts, holds up no decision, and nobody need ask it every
second.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from controllers.core import labels
from controllers.core.goals import aims_in
from controllers.core.model import Direction, Sample, TrialId
from controllers.core.objectives import went_back
from controllers.core.ports import MetricSource
from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks import contract
from mlflow_hooks.journal import read_points
from mlflow_hooks.points import Point
from mlflow_hooks.printed.attempt import begun_again

_OURS: Final = (
    *(contract.METRIC_CPU_SECONDS, contract.METRIC_CPU_WAIT),
    *(contract.METRIC_OBJECTIVE_FIRST, contract.METRIC_STEPS_TOTAL),
)


class OverJournals:
    """A source of metrics that believes what trials journal before what another source tells of them.

    Args:
        source: knows of scripts without our hooks.
        journalled: reads the newest sample of each trial that keeps a journal.
        now: seconds of the sweep's clock.

    Attributes:
        newest: what it told last.
    """

    def __init__(
        self, source: MetricSource, journalled: Callable[[], Mapping[TrialId, Sample]], now: Callable[[], float]
    ) -> None:
        self._source = source
        self._journalled = journalled
        self._now = now
        self._shown: dict[TrialId, tuple[Sample, Sample]] = {}
        self.newest: Mapping[TrialId, Sample] = {}

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial."""
        samples = self._source.poll()
        self.newest = {
            **samples,
            **{trial: self._shown_as(trial, last, samples.get(trial)) for trial, last in self._journalled().items()},
        }
        return self.newest

    def _shown_as(self, trial: TrialId, last: Sample, tracked: Sample | None) -> Sample:
        """Return ``last`` with a time that can be: the clock that stamped it may have been set since the one before.

        What the script has only ``tracked``, past its hooks, is added.
        """
        known, shown = self._shown.get(trial, (None, tracked))
        also = last.also if tracked is None else also_of(last, tracked)
        if known is last and shown is not None and shown.also == also:
            return shown  # the same object, so that nobody takes it for news
        at = min(last.at, self._now())
        shown = replace(last, at=at if shown is None else max(at, shown.at), also=also)
        self._shown[trial] = last, shown
        return shown


def also_of(journalled: Sample, tracked: Sample) -> tuple[tuple[str, float], ...]:
    """Return what counts beside the objective of a trial whose script may log a part of it past its hooks."""
    return tuple({**dict(tracked.also), **dict(journalled.also)}.items())


@dataclass(slots=True)
class _Journal:
    """What was read of a journal, up to ``offset`` bytes: the newest point and the greatest step of each metric."""

    offset: int = 0
    newest: dict[str, Point] = field(default_factory=dict)
    greatest: dict[str, int] = field(default_factory=dict)
    best: float | None = None
    sample: Sample | None = None


class JournalReader:
    """Reads what trials have journalled since the last time; scripts without our hooks have no journal.

    Args:
        root: where trials keep their state, each in a folder by its id.
        jobs: those of the run.
        to_sweep_time: turns Unix seconds into seconds of the sweep's clock.
    """

    def __init__(
        self, root: Path, jobs: Callable[[], Iterable[LocalJob]], to_sweep_time: Callable[[float], float]
    ) -> None:
        self._root = root
        self._jobs = jobs
        self._to_sweep_time = to_sweep_time
        self._journals: dict[TrialId, _Journal] = {}
        self._read: set[str] = set()

    def samples(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial that journalled its objective; the same one where nothing is new."""
        for job in self._jobs():
            if job.trial and job.attempt and job.trial not in self._read:
                over = job.phase.ended  # told before it is read: nothing comes after that
                self._look(job)
                if over:
                    self._read.add(job.trial)
        return {trial: journal.sample for trial, journal in self._journals.items() if journal.sample is not None}

    def _look(self, job: LocalJob) -> None:
        objective, also = job.step.annotations[labels.ANNOTATION_OBJECTIVE], aims_in(job.step.annotations).metrics
        known = self._journals.get(TrialId(job.trial), _Journal())
        try:
            points, offset = read_points(self._root / job.trial, (objective, *also, *_OURS), known.offset)
        except OSError:
            return  # a disk that stutters; the next look reads it
        if offset < known.offset:
            known = _Journal()
        known.offset = offset
        self._journals[TrialId(job.trial)] = known
        # Of a program whose printed metrics are read: what it repeats is no new point.
        times = begun_again(self._root / job.trial) if job.attempt > 1 else 0
        if known.sample is not None and known.sample.begun_again != times:
            known.sample = replace(known.sample, begun_again=times)
        if not points:
            return
        better = min if job.step.annotations[labels.ANNOTATION_DIRECTION] == Direction.MINIMIZE else max
        for point in points:
            # What was logged last counts, also where a second phase counts its steps from 0 again.
            known.newest[point.key] = point
            known.greatest[point.key] = max(point.step, known.greatest.get(point.key, point.step))
            if point.key == objective and math.isfinite(point.value):
                known.best = point.value if known.best is None else better(known.best, point.value)
        if objective in known.newest:
            known.sample = self._sample(objective, known, also, times)

    def _sample(self, objective: str, known: _Journal, also: Iterable[str], begun_again: int) -> Sample:
        newest = known.newest
        cpu, waited, first, total = (newest[key].value if key in newest else None for key in _OURS)
        return Sample(
            value=newest[objective].value,
            step=newest[objective].step,
            at=self._to_sweep_time(newest[objective].timestamp / 1000),
            cpu_seconds=cpu,
            first=first,
            steps_total=int(total) if total is not None and 0 < total < 2**53 else None,
            best=known.best,
            cpu_wait=waited,
            also=tuple(
                (name, newest[name].value) for name in also if name in newest and math.isfinite(newest[name].value)
            ),
            remark=next(
                (
                    went_back(name, known.greatest[name], newest[name].step)
                    for name in (objective, *also)
                    if name in newest and newest[name].step < known.greatest[name]
                ),
                "",
            ),
            begun_again=begun_again,
        )


def journalled_samples(
    root: Path, jobs: Iterable[LocalJob], to_sweep_time: Callable[[float], float]
) -> Mapping[TrialId, Sample]:
    """Return the newest sample of each trial that journalled its objective, see ``JournalReader``."""
    return JournalReader(root, lambda: jobs, to_sweep_time).samples()
