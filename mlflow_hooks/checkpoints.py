"""Checkpoints and how often they are due: made apart, checked by SHA-256, renamed into place, the newest two kept."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.state_folder import report, sync

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
_MOST_COPIES: Final = 3
"""Of a checkpoint whose owner may remove it meanwhile, as a newer one is there then."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint whose files are all there: ``step`` is the step to go on with.

    ``states`` names its folders, one per tracked state; ``cpu_seconds`` is what the trial had used, and ``points`` how
    many bytes its journal had before what an attempt that goes on from here logs again; None where nobody knows.
    """

    step: int
    folder: Path
    states: tuple[str, ...]
    cpu_seconds: float
    points: int | None = None


@dataclass(frozen=True, slots=True)
class MadeAt:
    """Where a training stands as a checkpoint is made: see ``Checkpoint``."""

    step: int
    cpu_seconds: float
    points: int | None = None


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
        beside = self.begin(step)
        return self.keep(MadeAt(step, cpu_seconds), beside, write(beside), allowed)

    def begin(self, step: int) -> Path:
        """Return an empty folder for the states of a checkpoint, which ``keep`` makes visible."""
        beside = self.folder / f".writing-{step:08d}-{os.getpid()}"
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        return beside

    def keep(self, made_at: MadeAt, beside: Path, states: tuple[str, ...], allowed: Callable[[], bool]) -> bool:
        """Make the checkpoint in ``beside`` outlive a loss of power, and then visible, as ``save`` does."""
        kept = self.folder / _name(made_at.step)
        files = sorted(path for path in beside.rglob("*") if path.is_file() and path != beside / MANIFEST)
        for path in files:
            sync(path)
        sums = {path.relative_to(beside).as_posix(): _sha256(path) for path in files}
        content = {**asdict(made_at), "states": list(states), "sha256": sums}
        (beside / MANIFEST).write_text(json.dumps(content, indent=1))
        sync(beside / MANIFEST)
        if not allowed():
            shutil.rmtree(beside, ignore_errors=True)
            return False
        shutil.rmtree(kept, ignore_errors=True)  # one that could not be read, or was not known to be kept
        beside.rename(kept)
        sync(self.folder)
        # Later ones could not be read when this attempt began: the next one may be able to.
        for old in [folder for folder in self._folders() if _step(folder) <= made_at.step][KEPT:]:
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
            manifest = parsed((beside / MANIFEST).read_text())
            # What the other had logged by then stands in its own journal.
            own = {"cpu_seconds": cpu_seconds, "points": None}
            (beside / MANIFEST).write_text(json.dumps({**manifest, **own}, indent=1))
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
        manifest = parsed((folder / MANIFEST).read_text())
        checkpoint = Checkpoint(
            int(manifest["step"]),
            folder,
            tuple(manifest["states"]),
            float(manifest.get("cpu_seconds", 0.0)),
            None if manifest.get("points") is None else int(manifest["points"]),
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
