"""The end of a sweep on this machine: MLflow gets what it lacks, and the runs of trials and sweep are ended.

All of it may be interrupted at any point and done again. What the trials came to is on the disk before it begins.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controllers.core.errors import SweepInterrupted
from controllers.local_run.services import RunServices
from controllers.tracking.access import shown
from mlflow_hooks.delivery import DeletedRunError, Delivery
from mlflow_hooks.journal import count_unsent, sent_bytes
from mlflow_hooks.state_folder import read_identity
from mlflow_hooks.tracking_server import TrackingError, TrackingServer, tracking_server

GIVE_UP_S: Final = 60.0
"""Seconds without any progress after which a user's MLflow is not waited for any longer."""
GIVE_UP_OWN_S: Final = 120.0
"""The same for the MLflow of the run, which may have to start again."""
HUNG_AFTER_S: Final = 15.0
"""Seconds without an answer after which the run's own MLflow is started again: by now nothing else loads it."""
_LOOK_S: Final = 0.2
_QUIET_S: Final = 3.0
_TELL_EVERY_S: Final = 10.0
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0
_MOST_PROBLEM: Final = 200


@dataclass(frozen=True, slots=True)
class Lack:
    """What MLflow does not have yet: ``points`` of ``trials``; none where only the ends of runs are missing."""

    points: int
    trials: int

    def __str__(self) -> str:
        """Say it."""
        if not self.points:
            return "how the runs ended"
        return f"{_count(self.points, 'point')} of {_count(self.trials, 'trial')}"


@dataclass(slots=True)
class Courier:
    """Brings what ended trials left unsent, then concludes, on a thread of its own: a request may hang.

    Args:
        folders: the trials' state folders.
        parents: gives the run of each sweep by its id; it fails while MLflow is away, and is called again.
        conclude: what is to be done once all have arrived; it may fail, and is called again.
        server: where they are sent to.

    Attributes:
        left: the folders of trials that MLflow does not have all of.
        deleted: what is told of runs that somebody has deleted in MLflow; they wait for nobody.
        problem: why it did not go on, the last time that it did not.
    """

    folders: Sequence[Path]
    parents: Callable[[], Mapping[str, str]]
    conclude: Callable[[], None]
    server: TrackingServer
    left: deque[Path] = field(default_factory=deque, init=False)
    deleted: list[str] = field(default_factory=list, init=False)
    problem: str = field(default="", init=False)
    done: threading.Event = field(default_factory=threading.Event, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _complete: bool = field(default=False, init=False)

    def start(self) -> None:
        """Begin."""
        self.left.extend(self._known())
        threading.Thread(target=self._run, name="courier", daemon=True).start()

    def _known(self) -> list[Path]:
        return [folder for folder in self.folders if read_identity(folder) is not None]

    def stop(self) -> None:
        """Ask for nothing more after the request that is under way."""
        self._stop.set()

    def lack(self) -> Lack:
        """Return what MLflow does not have yet."""
        unsent = [count_unsent(folder) for folder in list(self.left)]
        return Lack(sum(unsent), sum(map(bool, unsent)))

    @property
    def begun(self) -> bool:
        """Whether MLflow has answered at all."""
        return self._complete

    def mark(self) -> tuple[int, int]:
        """Return what changes whenever something has arrived."""
        left = list(self.left)
        return len(left), sum(map(sent_bytes, left[:1]))

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stop.is_set():
            try:
                self._bring_next()
            except DeletedRunError as error:
                self._set_aside(str(error))
            except Exception as error:  # noqa: BLE001 - whatever MLflow's client raises, the next try may work
                self.problem = shown(str(error))[:_MOST_PROBLEM]
                # It may be that MLflow takes nothing for this one alone.
                self.left.rotate(-1)
                self._stop.wait(max(pause, error.rest_s if isinstance(error, TrackingError) else 0.0))
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            else:
                pause = _FIRST_PAUSE_S
                if self.done.is_set():
                    return

    def _bring_next(self) -> None:
        parents = self.parents()
        if not self._complete:
            # Asking for the runs of the sweep may have found what trials only printed.
            self.left.extend(folder for folder in self._known() if folder not in self.left)
            self._complete = True
        if self.left:
            identity = read_identity(self.left[0])
            parent = parents.get((identity and identity.sweep_id) or "")
            Delivery(self.left[0], lambda: not self._stop.is_set(), self.server, parent, alone=True).deliver()
            if not self._stop.is_set():
                self.left.popleft()
        else:
            self.conclude()
            self.done.set()

    def _set_aside(self, why: str) -> None:
        folder = self.left.popleft()
        points = _count(count_unsent(folder), "point")
        self.deleted.append(f"{folder.name}: {points} kept in {folder}, as {why}")


def wait_for(courier: Courier, services: RunServices) -> Lack | None:
    """Wait until all has arrived, and show how it goes on; return what MLflow lacks where it takes nothing for long.

    Raises:
        SweepInterrupted: it was told to stop.
    """
    patience = GIVE_UP_S if services.server is None else GIVE_UP_OWN_S
    began = moved_at = told_at = time.monotonic()
    before = courier.mark(), services.start_up_s
    where = shown(services.tracking_uri)
    try:
        while not courier.done.wait(_LOOK_S):
            services.keep_alive(HUNG_AFTER_S)
            now, mark = time.monotonic(), (courier.mark(), services.start_up_s)
            if services.stop.is_set():
                lack = courier.lack()
                message = f"interrupted: all trials have ended, but MLflow lacks {lack}: run the same command again"
                raise SweepInterrupted(message)
            if mark != before:
                before, moved_at = mark, now
            if now > moved_at + patience or (services.server is not None and services.server.given_up):
                return courier.lack()
            if now > began + _QUIET_S and (told_at == began or now > told_at + _TELL_EVERY_S):
                told_at = now
                left_s = moved_at + patience - now
                services.screen.say(_waiting(courier.lack() if courier.begun else None, where, left_s))
        return None
    finally:
        courier.stop()


def courier_for(
    folders: Sequence[Path], parents: Callable[[], Mapping[str, str]], conclude: Callable[[], None]
) -> Courier:
    """Return what brings the points of trials in ``folders`` to the MLflow that ``MLFLOW_TRACKING_URI`` names."""
    return Courier(folders, parents, conclude, tracking_server())


def _waiting(lack: Lack | None, where: str, left_s: float) -> str:
    lacks = "does not answer yet" if lack is None else f"lacks {lack}"
    return (
        f"all trials have ended; MLflow at {where} {lacks}: waiting {left_s:.0f} s more where none of it arrives "
        "(Ctrl-C leaves at once and loses nothing)"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
