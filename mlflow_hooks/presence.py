"""Which process trains a trial, written where its controller can read it: whom to ask to leave, and whether it left.

A program may stand behind others: a shell, ``torchrun``, ``accelerate``, a pipe into ``tee``. A signal to the first of
these does not reach it, and the exit code of the first is not its own.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mlflow_hooks.no_links import reading
from mlflow_hooks.state_folder import write_whole
from mlflow_hooks.system import start_time

TRAINING: Final = "training"
"""It trains, or ended without having come to the end of its training."""
LEFT: Final = "left"
"""It has saved, and left the rest to the next attempt: exit code 75, whatever those before it make of that."""
_MOST_BYTES: Final = 4096
_MOST_WORKERS: Final = 256


@dataclass(frozen=True, slots=True)
class Presence:
    """A process that trains, or trained, a trial as one of its workers.

    ``pid`` is its number in its own namespace. ``started`` tells when it began, and so tells it from any other process
    that has that number (``system.start_time``). ``doing`` is ``training`` or ``left``.
    """

    attempt: str
    rank: int
    pid: int
    started: int
    doing: str

    @property
    def left(self) -> bool:
        """Whether it has saved and left."""
        return self.doing == LEFT


class Announcement:
    """What this process says of itself; a disk that fails only keeps others from knowing.

    Nothing is left of it once the training has come to its end. Children that were forked say nothing.
    """

    def __init__(self, folder: Path, attempt: str, rank: int) -> None:
        self._path = folder / _name(rank)
        self._me = Presence(attempt, rank, os.getpid(), start_time(os.getpid()) or 0, TRAINING)

    def training(self) -> None:
        """Say that this process trains."""
        self._write(TRAINING)

    def left(self) -> None:
        """Say that it has saved, and leaves the rest to the next attempt."""
        if self._still_mine():
            self._write(LEFT)

    def over(self) -> None:
        """Take it back: the training has come to its end."""
        if self._still_mine():
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _still_mine(self) -> bool:
        written = _read(self._path)
        return os.getpid() == self._me.pid and written is not None and written.attempt == self._me.attempt

    def _write(self, doing: str) -> None:
        if os.getpid() == self._me.pid:
            with suppress(OSError):
                write_whole(self._path, json.dumps({**asdict(self._me), "doing": doing}))


def presences(folder: Path, attempt: str) -> list[Presence]:
    """Return what the processes of one attempt said of themselves, by rank; anybody may have written it."""
    said = [(rank, _read(folder / _name(rank))) for rank in range(_MOST_WORKERS)]
    return [
        presence
        for rank, presence in said
        if presence is not None and (presence.attempt, presence.rank) == (attempt, rank)
    ]


def _name(rank: int) -> str:
    return f"process-{rank}.json" if rank else "process.json"


def _read(path: Path) -> Presence | None:
    try:
        with reading(path) as file:
            written: Any = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(written, dict):
        return None
    fields: list[Any] = [written.get(name) for name in Presence.__slots__]
    if [type(field) for field in fields] != [str, int, int, int, str]:
        return None
    return Presence(*fields)
