"""A tracking server for as long as a run lasts, where the user has none."""

import contextlib
import os
import shlex
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

from controllers.core.errors import SpeconError
from controllers.worlds.local import serve_mlflow
from controllers.worlds.local.processes import Tethered, proctree, start_tethered

_READY_WITHIN_S = 90.0


class MlflowServerError(SpeconError):
    """The local MLflow server did not come up; says where its log is."""


class LocalMlflow:
    """MLflow's server over SQLite on a free loopback port, restarted at the same address if it dies."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder.resolve()
        self._port = _free_port()
        self._process: Tethered | None = None

    @property
    def uri(self) -> str:
        """Address of the server and of its UI."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """Id of the server's first process, once it was started."""
        return 0 if self._process is None else self._process.pid

    @property
    def store(self) -> str:
        """URI of the database, for looking at it after the run."""
        return f"sqlite:///{self._folder / 'mlflow.db'}"

    @property
    def serve_again(self) -> str:
        """Command that serves the database and its artifacts again after the run."""
        options = ["--backend-store-uri", self.store, "--artifacts-destination", str(self._folder / "artifacts")]
        return shlex.join(["mlflow", "server", *options])

    def start(self) -> None:
        """Start the server; returns at once."""
        command = [sys.executable, "-m", serve_mlflow.__name__, str(self._port), str(self._folder)]
        env = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        # By the time of a restart it names this very server, which must not be its own client.
        env.pop("MLFLOW_TRACKING_URI", None)
        self._process = start_tethered(command, env, self._folder / "mlflow-server.log")

    def wait_ready(self) -> None:
        """Wait until the server answers.

        Raises:
            MlflowServerError: it ended or did not answer within 90 s, or another process has taken its port.
        """
        deadline = time.monotonic() + _READY_WITHIN_S
        while not (self._listens() and self._healthy()):
            if self._ended or time.monotonic() > deadline:
                taken = f": another process answers at {self.uri}" if self._healthy() else ""
                log = self._folder / "mlflow-server.log"
                message = f"the local MLflow server did not come up{taken}; see {log}"
                raise MlflowServerError(message)
            time.sleep(0.2)

    def keep_alive(self) -> None:
        """Start the server anew if it has died, once nobody else has its port."""
        if self._ended and _is_free(self._port):
            self.start()

    def close(self) -> None:
        """End the server and all its processes."""
        if self._process is not None:
            self._process.terminate()

    @property
    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _listens(self) -> bool:
        """Return whether a process of the server listens on its port: anybody may have taken it since it was free."""
        for pid in proctree.tree(self.pid):
            with contextlib.suppress(psutil.Error):
                for one in psutil.Process(pid).net_connections("tcp"):
                    if one.status == psutil.CONN_LISTEN and one.laddr.port == self._port:
                        return True
        return False

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=2) as answer:  # noqa: S310 - our own loopback server
                return bool(answer.status == 200)  # noqa: PLR2004 - HTTP's OK
        except (urllib.error.URLError, OSError):
            return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
