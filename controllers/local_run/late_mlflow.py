"""MLflow beside a sweep on this machine: it is opened on a thread of its own, so that trials begin before it answers.

MLflow's import takes seconds, and so do its server and its database. Until all is there the sweep has no metrics, which
its trials do not notice: what they log is on the disk. An MLflow that is away is asked again and again.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from controllers.core.actions import Assessment
from controllers.core.errors import SpeconError
from controllers.core.forecast import Forecast
from controllers.core.model import Sample, Snapshot, TrialId
from controllers.driving.stop_signals import in_future, waited
from controllers.tracking.access import MlflowAwayError, shown
from controllers.tracking.tag_boards import TagBoard, trial_tags
from controllers.worlds.local.jobs import LocalJob

if TYPE_CHECKING:
    from controllers.local_run.opened_mlflow import OpenedMlflow

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0
_TELL_AFTER_S: Final = 20.0
"""Seconds without MLflow after which that is told: its server may take that long to make its database."""
_MOST_PROBLEM: Final = 200
_LAST_REQUEST_S: Final = 10.0
_NICENESS: Final = 5


@dataclass(frozen=True, slots=True)
class SweepInMlflow:
    """What a sweep is in MLflow.

    Attributes:
        tracking_uri: where MLflow is.
        uid: what the ids of the trials begin with; it stands for the workflow's.
        experiments: the experiment of each sweep id.
        title: what the parent runs are called.
        policy: name of the policy.
        spec: the policy with its parameters.
    """

    tracking_uri: str
    uid: str
    experiments: Mapping[str, str]
    title: str
    policy: str
    spec: str


class LateMlflow:
    """A source of metrics and an observer, and brings what trials log. All of it does nothing until MLflow is opened.

    Args:
        sweep: what is to be opened.
        stopped: whether the run was told to stop: then nobody waits for MLflow.
    """

    def __init__(self, sweep: SweepInMlflow, stopped: Callable[[], bool] = lambda: False) -> None:
        self._sweep = sweep
        self._stopped = stopped
        self._side: OpenedMlflow | None = None
        self._error: SpeconError | None = None
        self._tags = TagBoard(self.run_ids, trial_tags)
        self._problem = "it has not answered yet"
        self._began_at, self._told = time.monotonic(), False
        self._opened = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, follow: "Callable[[OpenedMlflow], None] | None" = None, *, looks_elsewhere: bool = False) -> None:
        """Begin to open MLflow, unless that has begun; returns at once.

        Args:
            follow: called with what was opened, on the thread that opened it.
            looks_elsewhere: whether scripts may have logged to other experiments before.
        """
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._open, args=(follow, looks_elsewhere), name="mlflow-opening", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Read and write no more."""
        self._stop.set()
        if self._side is not None:
            self._side.close()

    def within(self, seconds: float) -> "OpenedMlflow | None":
        """Return what was opened; None where it is not after so many seconds.

        Raises:
            SpeconError: MLflow refuses the sweep for good.
        """
        if seconds > 0:
            waited(self._opened.wait, seconds, self._stopped)
        if self._error is not None:
            raise self._error
        return self._side

    def needed(self) -> "OpenedMlflow":
        """Return what was opened.

        Raises:
            MlflowAwayError: it is not open now.
            SpeconError: MLflow refuses the sweep for good.
        """
        side = self.within(0.0)
        if side is None:
            raise MlflowAwayError(self._problem)
        return side

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial, as far as MLflow has told."""
        side = self.within(0.0)
        return side.samples.poll() if side else {}

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Keep the tags of the trials' runs up to date."""
        self._tags.observe(snapshot, assessments, reasons)

    def tell(self, forecast: Forecast) -> None:
        """Show on the runs what is foreseen."""
        if side := self.within(0.0):
            side.foreseen.tell(forecast)

    def note(self, jobs: Sequence[LocalJob]) -> None:
        """Take note of the trials as they are now: what they journal is brought to MLflow."""
        if side := self.within(0.0):
            side.note(jobs)

    def stop_sending(self) -> None:
        """Bring nothing more of what the trials journal."""
        if side := self.within(0.0):
            self._wait(lambda: side.postman.close(_LAST_REQUEST_S), _LAST_REQUEST_S)

    def logged(self) -> Mapping[TrialId, Collection[str]]:
        """Return the names of the metrics that each trial has logged so far, as far as MLflow has told."""
        side = self.within(0.0)
        return side.source.logged if side else {}

    def run_ids(self) -> Mapping[TrialId, str]:
        """Return the run of each trial, as far as MLflow has told."""
        side = self.within(0.0)
        return side.source.run_ids if side else {}

    def settle(self, within_s: float, *, hurried: bool = True) -> None:
        """Wait until the runs show all that was decided; ``hurried`` where nothing trains any more."""
        if side := self.within(0.0):
            # It asks MLflow first, which may take as long as a request may, for each of several.
            self._wait(lambda: side.settle(within_s, hurried=hurried), 2 * within_s)

    def _wait(self, work: Callable[[], None], within_s: float) -> None:
        """Do what waits for MLflow on a thread of its own, and wait for that."""
        done = Future[None]()
        threading.Thread(target=in_future, args=(work, done), name="mlflow-wait", daemon=True).start()

        def came(seconds: float) -> bool:
            return bool(futures.wait([done], seconds).done)

        if waited(came, within_s, self._stopped):
            done.result()

    def news(self) -> Iterable[str]:
        """Yield in words, once for each, that MLflow is away, and which other experiments trials log to."""
        side = self.within(0.0)
        if side is not None:
            yield from side.news(self._sweep.experiments.values())
        elif not self._told and time.monotonic() > self._began_at + _TELL_AFTER_S:
            self._told = True
            where = shown(self._sweep.tracking_uri)
            yield (
                f"MLflow at {where} does not answer yet ({self._problem}); the trials train meanwhile, and what they "
                "log is kept and sent later"
            )

    def _open(self, follow: "Callable[[OpenedMlflow], None] | None", looks_elsewhere: bool) -> None:  # noqa: FBT001 - arguments of a thread
        _take_what_is_left()
        from controllers.local_run.opened_mlflow import OpenedMlflow  # noqa: PLC0415 - see the module's docstring

        pause = _FIRST_PAUSE_S
        while not self._stop.is_set():
            try:
                side = OpenedMlflow(self._sweep, self._tags, looks_elsewhere=looks_elsewhere)
                if follow is not None:
                    follow(side)
            except SpeconError as error:
                self._error = error
                break
            except Exception as error:  # noqa: BLE001 - whatever MLflow's client raises, the next try may work
                self._problem = shown(str(error))[:_MOST_PROBLEM]
                self._stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            else:
                self._side = side
                break
        self._opened.set()
        if self._stop.is_set() and self._side is not None:
            self._side.close()


def _take_what_is_left() -> None:
    """Give this thread and those that it will start a low priority, where a thread has one of its own, as on Linux."""
    with suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
