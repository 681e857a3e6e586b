"""The objective in what trials print: a script that logs it nowhere is followed by its log.

A script with hooks has its journal, one that logs by MLflow has its runs; both are believed before what they print.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from controllers.core import labels
from controllers.core.model import Direction, Sample, TrialId
from controllers.core.ports import MetricSource
from controllers.local_run.looks import Reach, SharedLooks
from controllers.local_run.printed_training import PrintedTraining
from controllers.worlds.local.beginnings import beginnings
from controllers.worlds.local.endings import is_hooked
from controllers.worlds.local.jobs import LocalJob, file_name
from mlflow_hooks import contract
from mlflow_hooks.bounds import LONGEST_LINE, PIECE
from mlflow_hooks.foreign_files import size_of
from mlflow_hooks.journal import POINTS
from mlflow_hooks.no_links import reading
from mlflow_hooks.points import Point
from mlflow_hooks.printed.lines import ENDS, lines_of
from mlflow_hooks.printed.named import no_number
from mlflow_hooks.state_folder import Identity, write_identity, write_whole

_PRINTED: Final = "printed"


@dataclass(slots=True)
class _Followed:
    """What is known of one log: read up to ``reach``, without ``rest``, the last line so far.

    ``attempts`` counts those after the first that began up to there; ``torn`` tells that the beginning of the last line
    was passed over.
    """

    training: PrintedTraining
    reach: Reach
    attempts: int = 0
    torn: bool = False
    rest: bytes = b""
    over: bool = False

    def until_the_next(self, began: Sequence[int]) -> int:
        """Note the attempts that began up to where the log was read; return how many bytes it is to the next."""
        for offset in began[self.attempts :]:
            if offset > self.reach.offset:
                return offset - self.reach.offset
            self.training.attempt(offset)
            # Half a line of an attempt that was killed is no line, and none of the next one's.
            self.attempts, self.rest, self.torn = self.attempts + 1, b"", self.torn and offset < self.reach.offset
        return PIECE

    def take(self, read: bytes) -> bytes:
        """Take what comes next of the log; return the whole lines that it ends."""
        whole, self.rest = _cut(self.rest + read)
        if self.torn and whole:
            first = ENDS.search(whole)
            whole = whole[first.end() :] if first else b""
            self.torn = False
        return whole


class PrintedObjectives:
    """Follows the logs of trials whose scripts have no hooks.

    Args:
        folder: of the run under one policy.
        say: shows a message: a value that is no number is told once, and so is what is left out of a log.
        epoch: gives the time in Unix seconds.
        clock: gives seconds; each look takes ``LOOK_S`` of it at most.
    """

    def __init__(
        self,
        folder: Path,
        say: Callable[[str], None],
        epoch: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._say = say
        self._said = False
        self._epoch = epoch
        self._clock = clock
        self._looks = SharedLooks(clock)
        self._followed: dict[str, _Followed] = {}
        self._hooked: set[str] = set()

    def look(self, jobs: Iterable[LocalJob]) -> bool:
        """Read what the trials among ``jobs`` have printed since the last look.

        Returns:
            Whether all was read that those have printed which have ended; if not, the next look goes on.
        """
        printing = [job for job in jobs if self._prints(job)]
        for job, until in self._looks.at_each(printing):
            if is_hooked(self._state(job)):
                self._hooked.add(job.trial)
                self._followed.pop(job.trial, None)
            else:
                self._read(job, until)
        return not any(job.phase.ended and self._prints(job) for job in printing)

    def read_all(self, jobs: Sequence[LocalJob], stopped: Callable[[], bool]) -> None:
        """Read all that trials which have ended have printed, as far as it is read at all, unless ``stopped``."""
        while not self.look(jobs) and not stopped():
            pass

    def _prints(self, job: LocalJob) -> bool:
        """Return whether there may be something new in the log of ``job``."""
        known = self._followed.get(job.trial)
        return bool(job.trial and job.attempt) and job.trial not in self._hooked and not (known and known.over)

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

    def _read(self, job: LocalJob, until: float) -> None:
        ended, began = job.phase.ended, beginnings(self._state(job))
        followed = self._followed.get(job.trial)
        if followed is None:
            notes = job.step.annotations
            better = min if notes[labels.ANNOTATION_DIRECTION] == Direction.MINIMIZE else max
            training = PrintedTraining(notes[labels.ANNOTATION_OBJECTIVE], better)
            followed = self._followed[job.trial] = _Followed(training, Reach(0, self._clock()))
        try:
            with reading(self._folder / "logs" / f"{file_name(job.trial)}.log") as log:
                all_read = self._follow(job, followed, began, log, until)
        except OSError:
            followed.over = ended  # a log that is not there now will not come
            return
        if ended and all_read:
            self._take(job, followed, followed.rest)
            followed.over = True
            if passed := followed.reach.passed:
                self._say(
                    f"{job.trial} printed faster than it can be followed: {passed} bytes of its log were passed over, "
                    "and the first and the newest lines count"
                )

    def _follow(self, job: LocalJob, followed: _Followed, began: Sequence[int], log: BinaryIO, until: float) -> bool:
        """Read on in a log, in which attempts ``began``; return whether it was read to its end.

        Of one that has ended, the newest lines are read in any case.
        """
        size, reach = size_of(log), followed.reach
        if reach.catch_up(size, self._clock()):
            followed.rest, followed.torn = b"", True
        if reach.left_s <= 0 and not job.phase.ended:
            return False
        log.seek(reach.offset)
        while read := log.read(min(PIECE, followed.until_the_next(began))):
            self._take(job, followed, followed.take(read))
            reach.read(len(read), now := self._clock())
            if now >= until or not reach.goes_on(size):
                return reach.offset >= size
        return True

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
    return printed[:end], printed[end:][-LONGEST_LINE:]


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
