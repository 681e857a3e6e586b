"""The one object of a trial that is written again and again: whose the trial is, and which objects make up its state.

What it names was written before it was, and never changes. So a reader finds all or nothing of a checkpoint.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.objects import StoreError

FORMAT: Final = 1
_MOST_FILES: Final = 100_000


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An object that holds one file: its key below the trial's own, its size in bytes, and its SHA-256."""

    key: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint: ``step`` is the step to go on with, ``files`` its files by their names within its folder."""

    step: int
    files: dict[str, StoredFile]

    @property
    def name(self) -> str:
        """Name of its folder on a disk."""
        return f"step-{self.step:08d}"


@dataclass(frozen=True, slots=True)
class Head:
    """What a store holds of a trial.

    ``attempt`` is the token of the attempt that owns it. ``serial`` counts what was written. ``checkpoints`` are the
    newest, newest first. The journal of points is ``parts``, one after another, and then ``tail``. ``notes`` are the
    small files of the state folder, by name.
    """

    attempt: str = ""
    serial: int = 0
    checkpoints: tuple[StoredCheckpoint, ...] = ()
    parts: tuple[StoredFile, ...] = ()
    tail: str = ""
    notes: dict[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the head as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Head":
        """Read a head back.

        Raises:
            StoreError: it is none of ours, or of a later version. It is never replaced: it may be somebody's.
        """
        try:
            given = parsed(data)
            if given["format"] != FORMAT:
                message = f"the trial's state is of format {given['format']!r}, which this version does not know"
                raise StoreError(message)
            head = cls(
                str(given["attempt"]),
                int(given["serial"]),
                tuple(_checkpoint(one) for one in given["checkpoints"]),
                tuple(_file(one) for one in given["parts"]),
                str(given["tail"]),
                {_plain(name): str(text) for name, text in given["notes"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"the trial's head is not one of ours: {data[:80]!r}"
            raise StoreError(message) from error
        return head


def _checkpoint(given: Any) -> StoredCheckpoint:  # noqa: ANN401 - JSON
    if len(given["files"]) > _MOST_FILES:
        message = f"{len(given['files'])} files in a checkpoint"
        raise ValueError(message)
    return StoredCheckpoint(int(given["step"]), {_plain(name): _file(file) for name, file in given["files"].items()})


def _file(given: Any) -> StoredFile:  # noqa: ANN401 - JSON
    return StoredFile(_plain(given["key"]), int(given["size"]), str(given["sha256"]))


def _plain(name: str) -> str:
    """Return a name that stays below its folder: anybody who may write to the bucket may have written it."""
    if not name or name.startswith("/") or ".." in PurePosixPath(name).parts or "\0" in name:
        message = f"{name!r} is no name of a file below a folder"
        raise ValueError(message)
    return name
