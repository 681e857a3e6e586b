"""The small files of a trial's state folder: there whole or not at all; and words for the reader of stderr."""

import json
import os
import re
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from mlflow_hooks.foreign_files import small_text
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.no_links import open_file
from mlflow_hooks.settings import AttemptSettings

IDENTITY: Final = "trial.json"
ENDED: Final = "ended.json"
RUN: Final = "run.json"
NOTICES: Final = "notices.json"
"""What a trial has to tell the person who runs the sweep, as a JSON list of texts."""
_RUN_ASKED_FOR = "run.asked"
_ROOM: Final = 2**20
_Kind = TypeVar("_Kind")
_CREDENTIALS: Final = re.compile(r"://[^/\s]*@")


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose points these are, and where in MLflow they belong."""

    trial_id: str
    run_name: str
    experiment: str
    sweep_id: str | None
    parent_run_id: str | None
    params: dict[str, Any]

    @classmethod
    def of(cls, settings: AttemptSettings) -> "Identity":
        """Take what matters to MLflow out of an attempt's settings."""
        return cls(
            settings.trial_id,
            settings.run_name,
            settings.experiment,
            settings.sweep_id,
            settings.parent_run_id,
            settings.params,
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """How the trial ended: an MLflow run status, when (milliseconds since 1970), and whether MLflow knows."""

    status: str
    timestamp: int
    told: bool = False

    def as_told(self) -> "Ending":
        """Return the same ending, known to MLflow."""
        return replace(self, told=True)

    @classmethod
    def now(cls, status: str) -> "Ending":
        """Return an ending of this moment."""
        return cls(status, int(time.time() * 1000))


@dataclass(frozen=True, slots=True)
class Run:
    """The trial's MLflow run, and whether it has its parameters."""

    run_id: str
    has_params: bool = False


def write_identity(folder: Path, identity: Identity) -> None:
    """Write ``trial.json``; values JSON has no form for are written as text. Without room, an earlier one stays."""
    try:
        write_whole(folder / IDENTITY, json.dumps(asdict(identity), default=str))
    except OSError as error:
        if read_identity(folder) is None:
            raise
        report(f"cannot replace {IDENTITY} ({error}); that of the attempt before stays")


def read_identity(folder: Path) -> Identity | None:
    """Return whose folder this is; None where no attempt ever started in it."""
    return _read(folder / IDENTITY, Identity)


def write_ending(folder: Path, ending: Ending) -> None:
    """Write ``ended.json``."""
    write_whole(folder / ENDED, json.dumps(asdict(ending)))


def read_ending(folder: Path) -> Ending | None:
    """Return how the trial ended; None while it has not."""
    return _read(folder / ENDED, Ending)


def forget_ending(folder: Path) -> None:
    """Forget how the trial ended: another attempt continues it."""
    (folder / ENDED).unlink(missing_ok=True)


def write_run(folder: Path, run: Run) -> None:
    """Write ``run.json``."""
    write_whole(folder / RUN, json.dumps(asdict(run)))


def read_run(folder: Path) -> Run | None:
    """Return the trial's run as far as this folder knows it."""
    return _read(folder / RUN, Run)


def _read(path: Path, kind: type[_Kind]) -> _Kind | None:
    """Return what ``path`` holds, without the fields that only a newer version knows; None where that is too little."""
    written = read_object(path)
    try:
        return kind(**{field.name: written[field.name] for field in fields(kind) if field.name in written})  # type: ignore[arg-type]  # each kind is a dataclass
    except TypeError:
        return None


def forget_run(folder: Path) -> None:
    """Drop a run that MLflow no longer has."""
    (folder / RUN).unlink(missing_ok=True)


def note_run_asked_for(folder: Path) -> None:
    """Note that MLflow is asked for a run of the trial: whatever becomes of the answer, it may have made one."""
    os.close(open_file(folder / _RUN_ASKED_FOR, os.O_WRONLY | os.O_CREAT))


def has_asked_for_run(folder: Path) -> bool:
    """Return whether MLflow may have made a run of the trial when it was asked to."""
    return (folder / _RUN_ASKED_FOR).exists() or (folder / RUN).exists()


def report(message: str) -> None:
    """Tell the person who reads the trial's log, but no user and password of an address; never fails."""
    try:
        print(f"mlflow_hooks: {_CREDENTIALS.sub('://***@', message)}", file=sys.stderr, flush=True)  # noqa: T201 - stderr is the place asked for
    except (OSError, ValueError):  # a closed stderr must not end the training
        return


def tell(folder: Path, text: str) -> None:
    """Tell ``text`` once in a trial's life, in its log and where a sweep shows what its trials tell; never fails."""
    try:
        written = parsed(small_text(folder / NOTICES))
    except (OSError, ValueError):
        written = []
    before = written if isinstance(written, list) else []
    if text not in before:
        report(text)
        with suppress(OSError):
            write_whole(folder / NOTICES, json.dumps([*before, text]))


def sendable(text: object) -> str:
    """Return ``text`` as MLflow can keep it: lone surrogates, as of broken file names, become question marks."""
    return str(text).encode("utf-8", "replace").decode()


def write_whole(path: Path, data: str) -> None:
    """Write ``data`` beside ``path`` and rename it there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        _write(beside, data.encode())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(data)


def disk_is_full(folder: Path) -> bool:
    """Return whether nothing can be written to ``folder`` any more."""
    beside = folder / f".room.{os.getpid()}"
    try:
        _write(beside, b"\0" * _ROOM)
        sync(beside)
    except OSError:
        return True
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    return False


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in ``path``; empty where there is none or it is broken."""
    try:
        written = parsed(small_text(path))
    except (OSError, ValueError):
        return {}
    return written if isinstance(written, dict) else {}


def sync(path: Path) -> None:
    """Have the disk keep ``path`` (a file or a folder) over a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
