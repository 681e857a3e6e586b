"""What the trials of a run on this machine journal: the truth of how they fare, whatever MLflow has of it yet.

It is read as it grows: an MLflow that is slow, or still starts, holds up no decision, and nobody need ask it every
second.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from controllers.core import labels
from controllers.core.goals import aims_in
from controllers.core.model import Direction, Sample, TrialId
from controllers.core.objectives import went_back
from controllers.core.ports import MetricSource
from controllers.local_run.looks import Reach, SharedLooks
from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks import contract
from mlflow_hooks.bounds import JOURNAL_PIECE
from mlflow_hooks.journal import journal_bytes, read_points
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
    """What was read of a journal, up to ``reach``: the newest point and the greatest step of each metric."""

    reach: Reach
    newest: dict[str, Point] = field(default_factory=dict)
    greatest: dict[str, int] = field(default_factory=dict)
    best: float | None = None
    sample: Sample | None = None
    begun_again: int = 0

    def note_begun_again(self, times: int) -> None:
        """Note how often the program began again, also where it has logged nothing since."""
        if times != self.begun_again:
            self.begun_again = times
            self.sample = self.sample and replace(self.sample, begun_again=times)


class JournalReader:
    """Reads what trials have journalled since the last time; scripts without our hooks have no journal.

    Args:
        root: where trials keep their state, each in a folder by its id.
        jobs: those of the run.
        to_sweep_time: turns Unix seconds into seconds of the sweep's clock.
        say: shows a message: what is left out of a journal is told once.
        clock: gives seconds; each look takes ``LOOK_S`` of it at most.
    """

    def __init__(
        self,
        root: Path,
        jobs: Callable[[], Iterable[LocalJob]],
        to_sweep_time: Callable[[float], float],
        say: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._jobs = jobs
        self._to_sweep_time = to_sweep_time
        self._say = say
        self._clock = clock
        self._looks = SharedLooks(clock)
        self._journals: dict[TrialId, _Journal] = {}
        self._read: set[str] = set()

    def samples(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial that journalled its objective; the same one where nothing is new."""
        self._look()
        return {trial: journal.sample for trial, journal in self._journals.items() if journal.sample is not None}

    def read_all(self, stopped: Callable[[], bool]) -> None:
        """Read all that trials which have ended have journalled, as far as it is read at all, unless ``stopped``."""
        while not self._look() and not stopped():
            pass

    def _look(self) -> bool:
        """Look at each journal once; return whether all is read of the trials that have ended."""
        unread = [job for job in self._jobs() if job.trial and job.attempt and job.trial not in self._read]
        ended = [job.trial for job in unread if job.phase.ended]  # told before it is read: nothing comes after that
        for job, until in self._looks.at_each(unread):
            if self._look_at(job, until) and job.phase.ended:
                self._read.add(job.trial)
                self._tell(job.trial)
        return self._read.issuperset(ended)

    def _tell(self, trial: str) -> None:
        known = self._journals.get(TrialId(trial))
        if known is not None and known.reach.passed:
            self._say(
                f"{trial} logged faster than it can be followed: {known.reach.passed} bytes of its journal were passed "
                "over, and the first and the newest values count"
            )

    def _look_at(self, job: LocalJob, until: float) -> bool:
        """Read on in a journal; return whether it was read to its end, as far as the disk gives it."""
        names = job.step.annotations[labels.ANNOTATION_OBJECTIVE], *aims_in(job.step.annotations).metrics, *_OURS
        folder = self._root / job.trial
        try:
            size = journal_bytes(folder)
            known = self._journals.get(TrialId(job.trial))
            if known is None or size < known.reach.offset:
                known = self._journals[TrialId(job.trial)] = _Journal(Reach(0, self._clock()))
            # Of a program whose printed metrics are read: what it repeats is no new point.
            known.note_begun_again(begun_again(folder) if job.attempt > 1 else 0)
            known.reach.catch_up(size, self._clock())
            if known.reach.left_s <= 0 and not job.phase.ended:
                return False
            while True:
                points, offset = read_points(folder, names, known.reach.offset, JOURNAL_PIECE)
                read = offset - known.reach.offset
                self._take(job, known, points)
                known.reach.read(read, now := self._clock())
                if not read or now >= until or not known.reach.goes_on(size):
                    return not read or offset >= size
        except OSError:
            return True  # a disk that stutters; the next look reads it, where there is one

    def _take(self, job: LocalJob, known: _Journal, points: Sequence[Point]) -> None:
        if not points:
            return
        objective, also = job.step.annotations[labels.ANNOTATION_OBJECTIVE], aims_in(job.step.annotations).metrics
        better = min if job.step.annotations[labels.ANNOTATION_DIRECTION] == Direction.MINIMIZE else max
        for point in points:
            # What was logged last counts, also where a second phase counts its steps from 0 again.
            known.newest[point.key] = point
            known.greatest[point.key] = max(point.step, known.greatest.get(point.key, point.step))
            if point.key == objective and math.isfinite(point.value):
                known.best = point.value if known.best is None else better(known.best, point.value)
        if objective in known.newest:
            known.sample = self._sample(objective, known, also)

    def _sample(self, objective: str, known: _Journal, also: Iterable[str]) -> Sample:
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
            begun_again=known.begun_again,
        )


def journalled_samples(
    root: Path, jobs: Iterable[LocalJob], to_sweep_time: Callable[[float], float]
) -> Mapping[TrialId, Sample]:
    """Return the newest sample of each trial that journalled its objective, see ``JournalReader``."""
    reader = JournalReader(root, lambda: jobs, to_sweep_time)
    reader.read_all(lambda: False)
    return reader.samples()
