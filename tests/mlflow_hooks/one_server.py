"""One MLflow server for all workers of a run: each start of one takes ten seconds of a core."""

import contextlib
import fcntl
import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.mlflow_hooks.hook_jobs import Server

_STARTED: Final[list[Server]] = []
"""Kept as long as the process lives: another one may stop them, and a handle that is dropped warns of that."""


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give the server that all workers of this run share; none of its tests stops it."""
    own = tmp_path_factory.getbasetemp()
    of_all_workers = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with one_server(of_all_workers / "mlflow-server") as server:
        yield server


@contextmanager
def one_server(folder: Path) -> Iterator[Server]:
    """Give the server of this folder: the first who needs it starts it, and the last who used it stops it.

    So nobody waits for another. Locks of the kernel say who uses it: a worker that is killed gives its own back.
    """
    folder.mkdir(exist_ok=True)
    with (folder / "users").open("w") as users:
        with _locked(folder / "start"):
            fcntl.flock(users, fcntl.LOCK_SH)
            server = _running(folder) or _started(folder)
        yield server
        with _locked(folder / "start"), contextlib.suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _stop(folder / "server.json")


def _stop(note: Path) -> None:
    """Stop the server of a note. Who comes from here on finds no note of it, and starts another."""
    known = json.loads(note.read_text(encoding="utf-8"))
    note.unlink()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(known["group"], signal.SIGKILL)


def _running(folder: Path) -> Server | None:
    note = folder / "server.json"
    if not note.exists():
        return None
    known = json.loads(note.read_text(encoding="utf-8"))
    server = Server(Path(known["folder"]), known["port"])
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{server.uri}/health", timeout=30):  # noqa: S310 - ours
        return server
    return None


def _started(folder: Path) -> Server:
    note = folder / "server.json"
    number = len([*folder.glob("server-*")])
    (home := folder / f"server-{number}").mkdir()
    server = Server(home)
    server.start()
    assert server.process is not None
    known = {"folder": str(home), "port": server.port, "group": server.process.pid}
    note.write_text(json.dumps(known), encoding="utf-8")
    _STARTED.append(server)
    return server


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
