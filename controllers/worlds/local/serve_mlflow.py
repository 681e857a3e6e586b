"""MLflow's own server in a single process.

``mlflow server`` imports MLflow, then starts a process that imports all of it again. This runs the same application in
the first process. It listens before it imports anything: trials begin meanwhile, and a script that asks MLflow for
something waits for the answer rather than to fail. The experiments of the run are there before the first answer: of
several scripts that find none and make it at once, all but one would fail. Where an MLflow does not have what that
takes, ``mlflow server`` runs.

Trials come first: the server takes the CPU that they leave.
"""

import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

_HOST: Final = "127.0.0.1"
_ARTIFACTS: Final = "mlflow-artifacts:/"
_WAITING: Final = 512
"""Connections that may wait for the server."""
_NICENESS: Final = 10
_AUTOGROUP: Final = Path("/proc/self/autogroup")
DATABASE: Final = "mlflow.db"
"""Name of the file that holds what runs logged."""


def database_uri(folder: Path) -> str:
    """Return the URI of the database in ``folder``, whatever characters its name has."""
    file = folder.resolve() / DATABASE
    if not _means_more(file):
        return f"sqlite:///{file}"
    from sqlalchemy import make_url  # noqa: PLC0415 - only odd names need it, and it takes a while

    # From 2.1 on SQLAlchemy takes a quoted name; before, a URI of SQLite's own has to hold it.
    quoted = quote(str(file))
    taken = make_url(f"sqlite:///{quoted}").database == str(file)
    return f"sqlite:///{quoted}" if taken else f"sqlite:///file:{quoted}?uri=true"


def artifacts_uri(folder: Path) -> str:
    """Return where the artifacts in ``folder`` are: a plain path where MLflow takes that as it is, else a URI."""
    path = folder.resolve() / "artifacts"
    return path.as_uri() if _means_more(path) else str(path)


def _means_more(path: Path) -> bool:
    """Return whether the name has a character that means something of its own in a URI."""
    return not {"?", "#", "%"}.isdisjoint(str(path))


def serve(port: int, store: str, artifacts: str, experiments: Sequence[str] = ()) -> None:
    """Serve until told to stop.

    Args:
        port: on the loopback device.
        store: URI of the database.
        artifacts: folder that artifacts are kept in, or its URI.
        experiments: names of those that must be there.
    """
    listening = socket.create_server((_HOST, port), backlog=_WAITING)
    try:
        import uvicorn  # noqa: PLC0415 - the alternative must not wait for it
        from mlflow.server import constants  # noqa: PLC0415

        told = {
            constants.BACKEND_STORE_URI_ENV_VAR: store,
            constants.REGISTRY_STORE_URI_ENV_VAR: store,
            constants.ARTIFACT_ROOT_ENV_VAR: _ARTIFACTS,
            constants.ARTIFACTS_DESTINATION_ENV_VAR: artifacts,
            constants.SERVE_ARTIFACTS_ENV_VAR: "true",
        }
        # The application reads them while it is imported.
        os.environ |= told
        from mlflow.server.fastapi_app import app  # noqa: PLC0415
        from mlflow.server.handlers import _get_tracking_store, initialize_backend_stores  # noqa: PLC0415
    except (ImportError, AttributeError):
        listening.close()
        command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", _HOST, "--port", str(port)]
        os.execv(sys.executable, [*command, "--backend-store-uri", store, "--artifacts-destination", artifacts])  # noqa: S606 - our own interpreter
    _make_database(Path(store.removeprefix("sqlite:///")))
    initialize_backend_stores(store, store, _ARTIFACTS)
    tracking: Any = _get_tracking_store()
    for name in experiments:
        if tracking.get_experiment_by_name(name) is None:
            tracking.create_experiment(name, None, [])
    uvicorn.Server(uvicorn.Config(app, host=_HOST, port=port)).run(sockets=[listening])


def _make_database(file: Path) -> None:
    """Make a database with MLflow's tables where there is none.

    It is made beside and renamed when it is whole: MLflow cannot open one again whose making was broken off.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # noqa: PLC0415 - as above

    if file.exists():
        return
    beside = file.with_name(f"{file.name}.new")
    for left in file.parent.glob(f"{beside.name}*"):
        left.unlink()
    make: Any = SqlAlchemyStore
    make(f"sqlite:///{beside}", _ARTIFACTS).engine.dispose()
    beside.replace(file)


def _give_way() -> None:
    """Take a low priority, also among sessions.

    Linux schedules each session as one where autogroups are on, as on most desktops. There niceness counts only within
    the session: without this, the server got half of a core that a trial computed on.
    """
    os.nice(_NICENESS)
    if os.getsid(0) == os.getpid():  # a session of its own, which holds nobody else's processes
        with suppress(OSError):
            _AUTOGROUP.write_text(str(_NICENESS))


def main() -> None:
    """Serve on the port that the first argument names, out of the folder that the second one names.

    The others name experiments.
    """
    _give_way()
    home = Path(sys.argv[2]).resolve()
    # From within its folder the database needs no URI that holds the folder's name, whatever that is.
    sys.path[:] = map(os.path.abspath, sys.path)
    os.chdir(home)
    serve(int(sys.argv[1]), f"sqlite:///{DATABASE}", artifacts_uri(home), sys.argv[3:])
