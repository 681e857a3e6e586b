"""What one sweep on this machine reads of MLflow and tells it, once MLflow answers.

Importing this takes a second or two, so ``LateMlflow`` does it while the first trials begin.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Protocol

from mlflow.exceptions import MlflowException

from controllers.core import labels
from controllers.core.model import Sample, TrialId
from controllers.core.ports import MetricSource
from controllers.core.results import RunResult
from controllers.driving.clock import SweepClock
from controllers.local_run.closing import Closing
from controllers.local_run.late_mlflow import SweepInMlflow
from controllers.local_run.logged import NamesLogged
from controllers.local_run.postman import Postman
from controllers.local_run.script_runs import ScriptRuns
from controllers.tracking.access import MlflowAwayError
from controllers.tracking.background import BackgroundReader
from controllers.tracking.client import CarefulClient
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.script_runs import Whereabouts
from controllers.tracking.still_there import StillThere
from controllers.tracking.sweep_runs import Steering, open_sweep
from controllers.tracking.tag_boards import TagBoard
from controllers.tracking.tags import TagWriter
from controllers.worlds.local.endings import is_hooked
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.views import result_of
from mlflow_hooks.tracking_server import tracking_server

_EVERY_S: Final = 1.0
"""Seconds between two looks at what MLflow has of trials where nothing else tells of them."""
_SELDOM_S: Final = 10.0
"""Seconds between two looks where all that run keep a journal: only their runs, for tags, must be found then."""
_REST: Final = 20.0
"""After each write, the writer of tags rests so many times as long: a server on this machine takes CPU from the
trials."""
_LAST_REQUEST_S: Final = 10.0


class Followed(Protocol):
    """The sweep that is followed."""

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each submitted trial's objective; may be asked from any thread."""
        ...

    def further_metrics(self) -> Mapping[TrialId, tuple[str, ...]]:
        """Return the metrics of each submitted trial that count beside that; likewise."""
        ...


class Seldom:
    """A source that is asked as often as anybody likes, and asks another seldom.

    Args:
        source: the other.
        every_s: seconds between two questions, unless ``often`` is set.
    """

    def __init__(self, source: MetricSource, every_s: float) -> None:
        self._source = source
        self._every_s = every_s
        self._due_at = 0.0
        self.often = True

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return what the other tells, nothing where it is not asked."""
        if not self.often and time.monotonic() < self._due_at:
            return {}
        self._due_at = time.monotonic() + self._every_s
        return self._source.poll()


class OpenedMlflow:
    """The runs of a sweep, opened. ``follow`` begins to read and to write; ``close`` ends that.

    Args:
        sweep: what is to be opened.
        tags: what the runs of its trials should show.
        looks_elsewhere: whether the scripts of a sweep that goes on may have logged to other experiments before.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """

    def __init__(self, sweep: SweepInMlflow, tags: TagBoard, *, looks_elsewhere: bool) -> None:
        self._uid = sweep.uid
        self._tags = tags
        self._client = CarefulClient(sweep.tracking_uri)
        steering = Steering(f"{sweep.title} · {sweep.policy}", sweep.policy, sweep.uid, spec=sweep.spec)
        self._runs = [open_sweep(self._client, name, at, steering) for name, at in sweep.experiments.items()]
        home = sorted({run.experiment_id for run in self._runs})
        self.where = Whereabouts(self._client, lambda: Scope(home, f"{sweep.uid}."))
        self.known = ScriptRuns(self._client, {run.sweep_id: run for run in self._runs}, self.where.experiments)
        self._stack = ExitStack()
        if looks_elsewhere:
            with suppress(MlflowException, OSError):
                self.where.look()

    @property
    def parents(self) -> Mapping[str, str]:
        """The run of each sweep, by its id."""
        return {run.sweep_id: run.run_id for run in self._runs}

    def follow(self, sweep: Followed, clock: SweepClock, root: Path) -> None:
        """Read what the trials log and show how they fare, from now on; what they journal under ``root`` is brought."""
        self._root = root
        self.source = MlflowSource(
            self._client,
            lambda: self.where.scope(lacking=len(self.source.run_ids) < len(sweep.objectives())),
            sweep.objectives,
            clock.from_epoch,
            epoch=clock.epoch,
            further=sweep.further_metrics,
        )
        self._seldom = Seldom(self.source, _SELDOM_S)
        reader = self._stack.enter_context(BackgroundReader(_EVERY_S))
        self.samples = self._stack.enter_context(reader.follow(self._seldom))
        self._still_there = StillThere(self._client, {run.run_id: run.sweep_id.partition(".")[2] for run in self._runs})
        self._stack.enter_context(reader.follow(self._still_there))
        writer = self._writer = self._stack.enter_context(TagWriter(self._client, rest=_REST))
        self._stack.enter_context(writer.showing(self._tags))
        forecasts = writer.forecasts(lambda: self.source.run_ids, lambda: self.parents, clock.to_epoch)
        self.foreseen = self._stack.enter_context(forecasts)
        self.postman = Postman(root, self.parents, tracking_server())
        self._stack.callback(self.postman.close, _LAST_REQUEST_S)
        self.postman.start()

    def note(self, jobs: Sequence[LocalJob]) -> None:
        """Take note of the trials as they are now."""
        self.postman.note(jobs)
        running = [job for job in jobs if job.trial and job.placed]
        self._seldom.often = not all(is_hooked(self._root / job.trial) for job in running)

    def news(self, home: Iterable[str]) -> Iterator[str]:
        """Yield in words, once for each, what is to be told of MLflow; ``home`` names the sweep's experiments."""
        yield from self.where.news(home)
        yield from self._still_there.news()

    def settle(self, within_s: float, *, hurried: bool) -> None:
        """Wait until the runs show all that was decided; ``hurried`` where no trial trains any more."""
        if hurried:
            self._writer.hurry()
        self.source.poll(whole=True)  # runs may have been made since the last look
        self._tags.settle(within_s)

    def without_runs(self, objectives: Mapping[TrialId, str]) -> Collection[TrialId]:
        """Return the trials that have no run, of those whose objectives are given.

        Raises:
            MlflowAwayError: MLflow does not answer.
            MlflowException: it is away or refuses.
            OSError: it is away.
        """
        return objectives.keys() - self._read_now(objectives).run_ids.keys() if objectives else ()

    def names_logged(self, root: Path, jobs: Sequence[LocalJob]) -> Mapping[str, Collection[str]]:
        """Return the names of all metrics that trials have logged by now, by their ids; see ``without_runs``.

        Args:
            root: where trials keep their journals.
            jobs: those of the trials.
        """
        source = self._read_now({TrialId(job.trial): job.step.annotations[labels.ANNOTATION_OBJECTIVE] for job in jobs})
        names = NamesLogged(root, self._uid, source)
        logged = {job.trial: names(result_of(job, job.trial.removeprefix(f"{self._uid}."), None)) for job in jobs}
        return {trial: told for trial, told in logged.items() if told is not None}

    def _read_now(self, objectives: Mapping[TrialId, str]) -> MlflowSource:
        """Return a source that has read all runs of the trials whose objectives are given; see ``without_runs``."""
        self.where.look()
        scope = self.where.scope(lacking=False)
        source = MlflowSource(self._client, lambda: scope, lambda: objectives, float)
        source.poll(whole=True)
        if source.away:
            message = "MLflow does not answer"
            raise MlflowAwayError(message)
        return source

    def close(self) -> None:
        """Read and write no more."""
        self._stack.close()

    def closing(self, folder: Path, jobs: Sequence[LocalJob], result: RunResult) -> Closing:
        """Return what is left to do in MLflow once it has all that the trials logged."""
        return Closing(self._client, self._runs, self.where, folder, self._uid, jobs, result)
