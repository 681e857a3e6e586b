"""Checkpoints, and when they are saved: written beside, checked by SHA-256, renamed into place, the newest two kept."""

import errno
import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mlflow_hooks.errors import StateMismatchError
from mlflow_hooks.interruption import Ownership
from mlflow_hooks.journal import Journal
from mlflow_hooks.metrics import Metrics
from mlflow_hooks.state_folder import disk_is_full, report, sync
from mlflow_hooks.states import State

KEPT: Final = 2
SAVING_SHARE: Final = 0.05
"""Greatest share of the time that periodic checkpoints take."""
HASTY_SHARE: Final = 0.1
"""The same where one takes longer than ``SHORTEST_NOTICE_S``: then the one before is what a lost node leaves."""
SHORTEST_NOTICE_S: Final = 15.0
"""Seconds that some spot machines give, whatever grace period a pod asks for."""
CHECKPOINTS: Final = "checkpoints"
"""The folder of a trial's checkpoints in its state folder."""
MANIFEST: Final = "manifest.json"
STUTTERS: Final = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT})
"""Errors that tell of a disk or a server of files, not of a mistake."""
_PAUSES_S: Final = (0.01, 0.1)
_MOST_COPIES: Final = 3
"""Of a checkpoint whose owner may remove it meanwhile, as a newer one is there then."""
_TOLD: Final = "told-of-plain-variables"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint whose files are all there: ``step`` is the step to go on with.

    ``states`` names its folders, one per tracked state; ``cpu_seconds`` is what the trial had used.
    """

    step: int
    folder: Path
    states: tuple[str, ...]
    cpu_seconds: float


class BrokenCheckpointError(Exception):
    """A checkpoint that lacks a file or has one that was changed or cut."""


def pause_after(took_s: float, every_s: float, grace_s: float) -> float:
    """Return the seconds until the next periodic save.

    Args:
        took_s: How long the last one took.
        every_s: The least seconds between two.
        grace_s: What there is to save between SIGTERM and SIGKILL.
    """
    share = SAVING_SHARE if took_s <= min(grace_s, SHORTEST_NOTICE_S) else HASTY_SHARE
    return max(every_s, took_s / share)


class Checkpoints:
    """The checkpoints of one trial under ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with suppress(OSError):  # then the first save tries again, and tells
            folder.mkdir(parents=True, exist_ok=True)
        self._broken: list[Path] = []

    def newest(self) -> Checkpoint | None:
        """Return the newest whole checkpoint; broken ones are reported and skipped."""
        for folder in self._folders():
            try:
                return _verified(folder)
            except BrokenCheckpointError as error:
                self._broken.append(folder)
                report(f"checkpoint {folder.name} is broken ({error}); looking for the one before")
            except OSError as error:
                report(f"checkpoint {folder.name} cannot be read ({error}); looking for the one before")
        return None

    def newest_folder(self) -> Path | None:
        """Return the folder of the newest checkpoint, whole or not; None without any."""
        return next(self._folders(), None)

    def at(self, step: int) -> Checkpoint:
        """Return the checkpoint that goes on with ``step``.

        Raises:
            BrokenCheckpointError: it is not there, or not whole.
            OSError: it cannot be read.
        """
        return _verified(self.folder / _name(step))

    def save(
        self, step: int, write: Callable[[Path], tuple[str, ...]], cpu_seconds: float, allowed: Callable[[], bool]
    ) -> bool:
        """Keep what ``write`` puts into the folder it is given, and return whether it was kept.

        ``write`` returns the names of the states it wrote; ``allowed`` is asked again just before
        the checkpoint becomes visible.
        """
        beside, kept = self.folder / f".writing-{step:08d}-{os.getpid()}", self.folder / _name(step)
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        states = write(beside)
        files = sorted(path for path in beside.rglob("*") if path.is_file() and path != beside / MANIFEST)
        for path in files:
            sync(path)
        sums = {path.relative_to(beside).as_posix(): _sha256(path) for path in files}
        content = {"step": step, "states": list(states), "cpu_seconds": cpu_seconds, "sha256": sums}
        (beside / MANIFEST).write_text(json.dumps(content, indent=1))
        sync(beside / MANIFEST)
        if not allowed():
            shutil.rmtree(beside, ignore_errors=True)
            return False
        shutil.rmtree(kept, ignore_errors=True)  # one that could not be read, or was not known to be kept
        beside.rename(kept)
        sync(self.folder)
        # Later ones could not be read when this attempt began: the next one may be able to.
        for old in [folder for folder in self._folders() if _step(folder) <= step][KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
        return True

    def take_over(self, others: Path, allowed: Callable[[], bool]) -> int | None:
        """Replace all checkpoints by a copy of the newest whole one in ``others``, whose owner may go on saving.

        ``allowed`` is asked just before the copy becomes visible.

        Returns:
            The step that the copy goes on with; None where there is none to copy, or it was not allowed.

        Raises:
            OSError: the disk fails.
        """
        own, beside = self.newest(), self.folder / f".writing-copy-{os.getpid()}"
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            copied = self._copied(others, beside, own.cpu_seconds if own else 0.0)
            if copied is None or not allowed():
                return None
            # In this order, so that there is a checkpoint whenever this is interrupted.
            kept = self.folder / _name(copied.step)
            shutil.rmtree(kept, ignore_errors=True)
            beside.rename(kept)
            for old in [folder for folder in self._folders() if folder != kept]:
                shutil.rmtree(old)
            sync(self.folder)
            return copied.step
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    @staticmethod
    def _copied(others: Path, beside: Path, cpu_seconds: float) -> Checkpoint | None:
        """Copy the newest whole checkpoint in ``others`` to ``beside``, as one of a trial that used ``cpu_seconds``."""
        for copy in range(1, _MOST_COPIES + 1):
            newest = Checkpoints(others).newest() if others.is_dir() else None
            if newest is None:
                return None
            shutil.rmtree(beside, ignore_errors=True)
            try:
                shutil.copytree(newest.folder, beside)
                _verified(beside)
            except (BrokenCheckpointError, OSError):
                if copy == _MOST_COPIES:
                    raise
                continue
            manifest = json.loads((beside / MANIFEST).read_text())
            (beside / MANIFEST).write_text(json.dumps({**manifest, "cpu_seconds": cpu_seconds}, indent=1))
            for path in (file for file in beside.rglob("*") if file.is_file()):
                sync(path)
            return _verified(beside)
        return None

    def clean(self) -> None:
        """Remove what killed attempts were writing, and what ``newest`` found to be broken."""
        self.remove_unfinished()
        for left in self._broken:
            shutil.rmtree(left, ignore_errors=True)

    def remove_unfinished(self) -> None:
        """Remove what was begun and is not there whole."""
        for left in self.folder.glob(".writing-*"):
            shutil.rmtree(left, ignore_errors=True)

    def _folders(self) -> Iterator[Path]:
        # By number: from a hundred million steps on, the names are no longer in that order.
        numbered = [path for path in self.folder.glob("step-*") if path.name.removeprefix("step-").isdecimal()]
        yield from sorted(numbered, key=_step, reverse=True)


def _step(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verified(folder: Path) -> Checkpoint:
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        checkpoint = Checkpoint(
            int(manifest["step"]), folder, tuple(manifest["states"]), float(manifest.get("cpu_seconds", 0.0))
        )
        sums = dict(manifest["sha256"])
    except (FileNotFoundError, KeyError, TypeError, ValueError) as error:
        message = f"no usable {MANIFEST}"
        raise BrokenCheckpointError(message) from error
    for name, expected in sums.items():
        path = folder / name
        if not path.is_file() or _sha256(path) != expected:
            message = f"{name} is {'not what was saved' if path.is_file() else 'missing'}"
            raise BrokenCheckpointError(message)
    return checkpoint


def _loaded(state: State, folder: Path) -> None:
    """Give ``state`` back what ``folder`` holds; a disk that stutters is asked again.

    Raises:
        OSError: it cannot be read, though it could when it was verified.
    """
    for pause in _PAUSES_S:
        try:
            state.load(folder)
        except OSError as error:
            if error.errno not in STUTTERS:
                raise
            time.sleep(pause)
        else:
            return
    state.load(folder)


class Restoring:
    """The tracked states of one attempt, as ``checkpoint``, which the attempt goes on from, holds them.

    ``saved_step`` is the step that the newest checkpoint goes on with, 0 without any.
    """

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self._states: dict[str, State] = {}
        self.checkpoint = checkpoint
        self.saved_step = checkpoint.step if checkpoint else 0

    def track(self, state: State, name: str | None) -> None:
        """Track ``state`` and give it back what the checkpoint holds under its name."""
        name = name or f"state-{len(self._states)}"
        if self.checkpoint and name in self.checkpoint.states:
            _loaded(state, self.checkpoint.folder / name)
        self._states[name] = state

    def check_complete(self) -> None:
        """Make sure that all of the checkpoint was taken back.

        Raises:
            StateMismatchError: the script tracks other states than the checkpoint holds.
        """
        if self.checkpoint and set(self.checkpoint.states) != self._states.keys():
            tracked, held = sorted(self._states), sorted(self.checkpoint.states)
            message = f"{self.checkpoint.folder} holds the states {held}, but the script tracks {tracked}"
            raise StateMismatchError(message)


class Saving(Restoring):
    """The tracked states of one attempt, and the checkpoints that it makes of them."""

    def __init__(self, checkpoints: Checkpoints, owner: Ownership, every_s: float, grace_s: float) -> None:
        super().__init__(checkpoints.newest())
        self._checkpoints = checkpoints
        self._owner = owner
        self._every_s, self._grace_s = every_s, grace_s
        self._least_s: float | None = None
        checkpoints.clean()
        self._due_at = time.monotonic() + every_s
        self._warned = False
        self._failing = False

    def tell_of_plain_variables(self) -> None:
        """Tell once in a trial's life what comes back where only the parts of a model are tracked."""
        if not self.checkpoint or not all(getattr(state, "of_model", False) for state in self._states.values()):
            return
        try:
            (self._checkpoints.folder.parent / _TOLD).touch(exist_ok=False)
        except OSError:  # it was told before, or would be told each time
            return
        report(
            f"going on at step {self.saved_step} with {', '.join(self._states)}; plain variables of the script, such "
            "as a best value or a patience, start again from their first values: keep them by t.track_values()"
        )

    def due(self) -> bool:
        """Return whether it is time for a periodic checkpoint."""
        return time.monotonic() >= self._due_at

    def fits(self, within_s: float) -> bool:
        """Return whether a checkpoint may be whole ``within_s`` seconds from now, by those of this attempt so far."""
        return self._least_s is None or self._least_s <= within_s

    def save(self, step: int, journal: Journal, metrics: Metrics) -> None:
        """Keep all states as they are before ``step``; a disk that fails is reported, not raised."""
        began, kept = time.monotonic(), False
        if step > self.saved_step and not self._states and not self._warned:
            report("nothing is tracked, so an interrupted training starts again at step 0")
            self._warned = True
        if step > self.saved_step and self._states and self._owner.held():
            # The points up to a checkpoint must outlive whatever the checkpoint outlives: no attempt logs them again.
            if journal.sync():
                self._try_twice(step, journal, metrics)
                kept = self.saved_step == step
            else:
                self._say(f"no checkpoint at step {step}: the metrics before it are not written yet")
        now = time.monotonic()
        if kept:
            self._least_s = min(now - began, math.inf if self._least_s is None else self._least_s)
        self._due_at = now + pause_after(now - began, self._every_s, self._grace_s)

    def _try_twice(self, step: int, journal: Journal, metrics: Metrics) -> None:
        """Save; PyTorch and others tell of a disk by errors of their own, so only a mistake made twice is one."""
        for first in (True, False):
            try:
                if self._checkpoints.save(
                    step, self._write, metrics.cpu_seconds(), lambda: self._owner.held() and journal.ours()
                ):
                    self.saved_step = step
                    self._failing = False
            except Exception as error:
                of_the_disk = isinstance(error, OSError) or disk_is_full(self._checkpoints.folder)
                self._checkpoints.remove_unfinished()
                if not (first or of_the_disk):
                    raise
                if of_the_disk:
                    self._say(f"no checkpoint at step {step} ({error}); the one before stays")
                    return
            else:
                return

    def _say(self, what: str) -> None:
        if not self._failing:
            report(what)
        self._failing = True

    def _write(self, folder: Path) -> tuple[str, ...]:
        for name, state in self._states.items():
            (folder / name).mkdir()
            state.save(folder / name)
        return tuple(self._states)
