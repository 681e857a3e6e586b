"""Real trainings in processes of their own, and a real MLflow server to log to."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

JOBS = Path(__file__).parent / "jobs"
ROOT = Path(__file__).parents[2]
SERVE = [sys.executable, "-m", "mlflow", "server", "--workers", "1"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """An MLflow server that can be started, frozen, thawed and stopped."""

    folder: Path
    port: int = field(default_factory=free_port)
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        store = f"sqlite:///{self.folder / 'mlflow.db'}"
        artifacts = str(self.folder / "artifacts")
        where = ["--backend-store-uri", store, "--artifacts-destination", artifacts, "--port", str(self.port)]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*SERVE, *where, *self.options],
                env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **self.variables},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_until_healthy(self.process)

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        os.killpg(self.process.pid, number)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _wait_until_healthy(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until and process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=5) as answer:  # noqa: S310 - our own server
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.2)
        message = f"the MLflow server did not start: {self._log.read_text(errors='replace')[-2000:]}"
        raise TimeoutError(message)


@dataclass(frozen=True)
class Ended:
    """What a job printed and how it ended."""

    code: int
    out: dict[str, str]
    err: str


class StartJob(Protocol):
    """Starts ``jobs/<name>_job.py`` as a trial."""

    def __call__(self, name: str, trial_id: str, **more: str) -> subprocess.Popen[str]: ...


class RunJob(Protocol):
    """Runs ``jobs/<name>_job.py`` as a trial to its end."""

    def __call__(self, name: str, trial_id: str, **more: str) -> Ended: ...


def job_environment(trial_id: str, state_root: Path, more: dict[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPECON_", "MLFLOW_", "JOB_"))}
    own = {"SPECON_TRIAL_ID": trial_id, "SPECON_STATE_ROOT": str(state_root), "SPECON_OBJECTIVE": "loss"}
    return {**kept, "PYTHONPATH": str(ROOT), **own, **more}


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)
