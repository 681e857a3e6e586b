"""One MLflow server for all workers of a run: each start of one takes ten seconds of a core."""

import contextlib
import fcntl
import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.mlflow_hooks.hook_jobs import Server


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give the server that all workers of this run share; none of its tests stops it."""
    own = tmp_path_factory.getbasetemp()
    of_all_workers = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with one_server(of_all_workers / "mlflow-server") as server:
        yield server


@contextmanager
def one_server(folder: Path) -> Iterator[Server]:
    """Give the server of this folder, which the first that needs it starts and ends, once nobody else uses it.

    Locks of the kernel say who uses it: a worker that is killed gives its own back.
    """
    folder.mkdir(exist_ok=True)
    with ExitStack() as mine, (folder / "users").open("w") as users:
        with _locked(folder / "start"):
            fcntl.flock(users, fcntl.LOCK_SH)
            server = _running(folder)
            if server is None:
                server = _started(folder)
                mine.callback(server.stop)
        yield server
        fcntl.flock(users, fcntl.LOCK_UN)
        if server.process is not None:
            fcntl.flock(users, fcntl.LOCK_EX)
            # Who comes from here on finds no note of it, and starts another.
            (folder / "server.json").unlink()


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
    note.write_text(json.dumps({"folder": str(home), "port": server.port}), encoding="utf-8")
    return server


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
