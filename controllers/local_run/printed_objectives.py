"""The objective in what trials print: a script that logs it nowhere is followed by its log.

A script with hooks has its journal, one that logs by MLflow has its runs; both are believed before what they print.
"""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from controllers.core import labels
from controllers.core.model import Direction, Sample, TrialId
from controllers.core.ports import MetricSource
from controllers.local_run.printed_training import PrintedTraining
from controllers.worlds.local.beginnings import beginnings
from controllers.worlds.local.endings import is_hooked
from controllers.worlds.local.jobs import LocalJob, file_name
from mlflow_hooks import contract
from mlflow_hooks.journal import POINTS
from mlflow_hooks.points import Point
from mlflow_hooks.printed.lines import lines_of
from mlflow_hooks.printed.named import no_number
from mlflow_hooks.state_folder import Identity, write_identity, write_whole

_AT_ONCE: Final = 2**22
"""Bytes of a log that are read at once."""
_LONGEST_LINE: Final = 2**16
"""Bytes of a line that are read at most."""
_PRINTED: Final = "printed"


@dataclass(slots=True)
class _Followed:
    """One log, read up to ``offset``; ``rest`` is its last line so far, ``attempts`` counts those after the first."""

    training: PrintedTraining
    offset: int = 0
    attempts: int = 0
    rest: bytes = b""
    over: bool = False


class PrintedObjectives:
    """Follows the logs of trials whose scripts have no hooks.

    Args:
        folder: of the run under one policy.
        say: shows a message: a value that is no number is told once.
        epoch: gives the time in Unix seconds.
    """

    def __init__(self, folder: Path, say: Callable[[str], None], epoch: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._say = say
        self._said = False
        self._epoch = epoch
        self._followed: dict[str, _Followed] = {}
        self._hooked: set[str] = set()

    def look(self, jobs: Iterable[LocalJob]) -> None:
        """Read what the trials among ``jobs`` have printed since the last look."""
        for job in jobs:
            known = self._followed.get(job.trial)
            if not job.trial or not job.attempt or job.trial in self._hooked or (known and known.over):
                continue
            if is_hooked(self._state(job)):
                self._hooked.add(job.trial)
                self._followed.pop(job.trial, None)
            else:
                self._read(job)

    def points(self, job: LocalJob) -> Sequence[Point]:
        """Return all values of the objective that a trial has printed, at the steps that it told or numbered from 0."""
        followed = self._followed.get(job.trial)
        return followed.training.points if followed else ()

    def samples(self, besides: Collection[TrialId], to_sweep_time: Callable[[float], float]) -> dict[TrialId, Sample]:
        """Return the newest sample of each trial that has printed its objective.

        Args:
            besides: trials that others know more about.
            to_sweep_time: turns Unix seconds into seconds of the sweep's clock.
        """
        told = {TrialId(trial): followed.training for trial, followed in self._followed.items()}
        return {
            trial: Sample(
                value=training.points[-1].value,
                step=training.points[-1].step,
                at=to_sweep_time(training.points[-1].timestamp / 1000),
                first=training.first,
                best=training.best,
                training=f"{_PRINTED} {training.began}",
                begun_again=training.begun_again,
            )
            for trial, training in told.items()
            if training.points and trial not in besides
        }

    def _state(self, job: LocalJob) -> Path:
        return self._folder / "state" / job.trial

    def _read(self, job: LocalJob) -> None:
        ended, began = job.phase.ended, beginnings(self._state(job))
        followed = self._followed.get(job.trial)
        if followed is None:
            notes = job.step.annotations
            better = min if notes[labels.ANNOTATION_DIRECTION] == Direction.MINIMIZE else max
            training = PrintedTraining(notes[labels.ANNOTATION_OBJECTIVE], better)
            followed = self._followed[job.trial] = _Followed(training)
        try:
            with (self._folder / "logs" / f"{file_name(job.trial)}.log").open("rb") as log:
                for offset in began[followed.attempts :]:
                    self._read_to(job, followed, log, offset)
                    followed.training.attempt(offset)
                    # Half a line of an attempt that was killed is no line, and none of the next one's.
                    followed.attempts, followed.rest = followed.attempts + 1, b""
                self._read_to(job, followed, log, sys.maxsize)
        except OSError:
            return
        if ended:
            self._take(job, followed, followed.rest)
            followed.over = True

    def _read_to(self, job: LocalJob, followed: _Followed, log: BinaryIO, end: int) -> None:
        """Read a log up to ``end`` bytes, or as far as there is more.

        Raises:
            OSError: it cannot be read.
        """
        log.seek(followed.offset)
        while read := log.read(max(0, min(_AT_ONCE, end - followed.offset))):
            followed.offset += len(read)
            whole, followed.rest = _cut(followed.rest + read)
            self._take(job, followed, whole)

    def _take(self, job: LocalJob, followed: _Followed, printed: bytes) -> None:
        """Note the values in whole lines."""
        for line in lines_of(printed):
            read = followed.training.take(line, lambda: int(self._epoch() * 1000))
            if read.odd and not self._said:
                self._said = True
                self._say(f"{job.trial}: {no_number(followed.training.objective, read.odd[0], line)}")


def _cut(printed: bytes) -> tuple[bytes, bytes]:
    """Return the whole lines, and the one that is not over."""
    end = max(printed.rfind(b"\n"), printed.rfind(b"\r")) + 1
    return printed[:end], printed[end:][-_LONGEST_LINE:]


class WithPrinted:
    """A source that adds to another what trials print, where that one knows no run of theirs.

    Args:
        source: the other.
        printed: follows the logs.
        jobs: gives those of the sweep.
        known: gives the trials that have a run in MLflow.
        to_sweep_time: turns Unix seconds into seconds of the sweep's clock.
    """

    def __init__(
        self,
        source: MetricSource,
        printed: PrintedObjectives,
        jobs: Callable[[], Iterable[LocalJob]],
        known: Callable[[], Collection[TrialId]],
        to_sweep_time: Callable[[float], float],
    ) -> None:
        self._source = source
        self._printed = printed
        self._jobs = jobs
        self._known = known
        self._to_sweep_time = to_sweep_time

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial."""
        samples = self._source.poll()
        self._printed.look(self._jobs())
        printed = self._printed.samples({*samples, *self._known()}, self._to_sweep_time)
        return {**samples, **printed} if printed else samples


def keep_printed(
    folder: Path, job: LocalJob, points: Sequence[Point], experiment: str, parent_run_id: str | None
) -> None:
    """Keep in a trial's own folder what it printed, as hooks would have: from there it gets into MLflow.

    Args:
        folder: of the trial's state.
        job: of the trial.
        points: what it printed of its objective.
        experiment: MLflow's, that the sweep is in.
        parent_run_id: the run of the sweep.

    Raises:
        OSError: the folder takes nothing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    identity = Identity(
        trial_id=job.trial,
        run_name=job.trial.rpartition(".")[2],
        experiment=experiment,
        sweep_id=job.step.env.get(contract.ENV_SWEEP_ID),
        parent_run_id=parent_run_id,
        params=job.params,
    )
    write_identity(folder, identity)
    # The last one: where it is there, all is.
    write_whole(folder / POINTS, b"".join(point.encode() for point in points).decode())
