"""A tracking server for as long as a run lasts, where the user has none."""

import contextlib
import os
import shlex
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import psutil

from controllers.core.errors import SpeconError
from controllers.core.own_program import own_command, own_environment
from controllers.worlds.local import serve_mlflow
from controllers.worlds.local.processes import Tethered, proctree, start_tethered
from controllers.worlds.local.pulse import Pulse, answers
from controllers.worlds.local.trusted_folders import make_private

_READY_WITHIN_S: Final = 90.0
"""Seconds that a server has to start, beside those in which it works: on a busy machine it needs minutes,"""
_STARTS_WITHIN_S: Final = 900.0
"""and so many at the most."""
_LOOK_EVERY_S: Final = 5.0
_LEAST_WORK_S: Final = 0.02
_MOST_STARTS: Final = 3
"""Starts after which a server that never came up isn't started again."""
_PAUSE_S: Final = 15.0
"""Seconds from one such start to the next, at least."""
HUNG_AFTER_S: Final = 60.0
"""Seconds without an answer after which a server that did answer is taken for one that hangs."""


class MlflowServerError(SpeconError):
    """The local MLflow server did not come up; says where its log is."""


class LocalMlflow:
    """MLflow's server over SQLite on a free loopback port, restarted at the same address if it dies or hangs.

    Args:
        folder: for the database, the artifacts and the log.
        experiments: names of those that are there before it answers.
    """

    def __init__(self, folder: Path, experiments: Iterable[str] = ()) -> None:
        make_private(folder)
        self._folder = folder.resolve()
        self._experiments = tuple(experiments)
        self._port = _free_port()
        self._process: Tethered | None = None
        self._came_up = self._told = False
        self._starts = 0
        self._problem = ""
        self._pulse = Pulse(f"{self.uri}/health")
        self._cpu = proctree.CpuAccount()
        self._start_up_s = self._worked_at = self._looked_at = 0.0

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
        return serve_mlflow.database_uri(self._folder)

    @property
    def serve_again(self) -> str:
        """Command that serves the database and its artifacts again after the run."""
        options = [
            "--backend-store-uri",
            self.store,
            "--artifacts-destination",
            serve_mlflow.artifacts_uri(self._folder),
        ]
        return shlex.join(["mlflow", "server", *options])

    def start(self) -> None:
        """Start the server; returns at once."""
        command = own_command(serve_mlflow.__name__, str(self._port), str(self._folder), *self._experiments)
        env = own_environment(os.environ) | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONSAFEPATH": "1"}
        # By the time of a restart it names this very server, which must not be its own client.
        env.pop("MLFLOW_TRACKING_URI", None)
        self._process = start_tethered(command, env, self._folder / "mlflow-server.log")
        self._starts += 1
        self._cpu = proctree.CpuAccount()
        self._start_up_s, self._worked_at = 0.0, time.monotonic()
        self._pulse.restart()

    def wait_ready(self) -> None:
        """Wait until the server answers.

        Raises:
            MlflowServerError: it ended or hangs, or another process has taken its port.
        """
        while not (self._listens() and self._healthy()):
            if self._ended or self._hangs(_READY_WITHIN_S):
                raise MlflowServerError(self._failure())
            time.sleep(0.2)
        self._came_up = True

    def keep_alive(self, hung_after_s: float = HUNG_AFTER_S) -> None:
        """Start the server again if it has died or hangs, once nobody else has its port.

        Args:
            hung_after_s: seconds without an answer after which it hangs; one that is starting gets 90 s, and as many
                more as it works.
        """
        self._came_up = self._came_up or (self._pulse.heard and self._listens())
        if self._process is not None and not self._ended and self._hangs(hung_after_s):
            self._process.terminate()
        if not self._ended:
            return
        if not self._came_up and self._starts:
            self._problem = self._problem or self._failure()
            if self.given_up or self._pulse.silent_s < _PAUSE_S:
                return
        if _is_free(self._port):
            self.start()

    def _hangs(self, hung_after_s: float) -> bool:
        if self._pulse.heard:
            return self._pulse.silent_s > hung_after_s
        used_s, idle_s = self.start_up_s, time.monotonic() - self._worked_at
        return self._pulse.silent_s > (_STARTS_WITHIN_S if used_s and idle_s < _READY_WITHIN_S else _READY_WITHIN_S)

    @property
    def start_up_s(self) -> float:
        """CPU seconds of a server that has not answered yet, else 0: while they grow, it is slow and does not hang."""
        if self._pulse.heard or self._process is None:
            return 0.0
        now = time.monotonic()
        if now > self._looked_at + _LOOK_EVERY_S:
            self._looked_at = now
            used_s = self._cpu.seconds(proctree.tree(self.pid))
            if used_s > self._start_up_s + _LEAST_WORK_S:
                self._start_up_s, self._worked_at = used_s, now
        return self._start_up_s

    @property
    def given_up(self) -> bool:
        """Whether it has never come up, and isn't started again."""
        return self._ended and not self._came_up and self._starts >= _MOST_STARTS

    def news(self) -> Iterable[str]:
        """Yield in words, once, that it did not come up. Trials train without it; what they log is on the disk."""
        if self._problem and not self._told:
            self._told = True
            yield f"{self._problem} (the trials train meanwhile, and what they log is kept)"

    def _failure(self) -> str:
        """Say that it did not come up, and where to look for the reason."""
        taken = f": another process answers at {self.uri}" if self._healthy() else ""
        return f"the local MLflow server did not come up{taken}; see {self._folder / 'mlflow-server.log'}"

    def close(self) -> None:
        """End the server and all its processes."""
        self._pulse.close()
        if self._process is not None:
            self._process.terminate()

    @property
    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _listens(self) -> bool:
        """Return whether a process of the server listens on its port: anybody may have taken it since it was free."""
        for pid in proctree.tree(self.pid):
            with contextlib.suppress(psutil.Error):
                for connection in psutil.Process(pid).net_connections("tcp"):
                    if connection.status == psutil.CONN_LISTEN and connection.laddr.port == self._port:
                        return True
        return False

    def _healthy(self) -> bool:
        return answers(f"{self.uri}/health", within_s=2.0)


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
