"""MLflow servers: one that pods and host reach, and that may go away and come back; and one in the cluster."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from tests.cluster.layout import HOST_ADDRESS
from tests.cluster.processes import wait_until

_STARTS_WITHIN_S: Final = 120.0


class AnyTracking(Protocol):
    """An MLflow server."""

    @property
    def uri(self) -> str:
        """Its address from this machine."""

    @property
    def uri_for_pods(self) -> str:
        """Its address from pods."""


@dataclass(frozen=True)
class ForwardedTracking:
    """An MLflow server in the cluster; one of its ports is forwarded to this machine."""

    uri: str
    uri_for_pods: str


@dataclass
class Tracking:
    """``mlflow server`` over SQLite, on the bridge of the cluster.

    Attributes:
        folder: where it keeps everything.
        port: where it listens, also after it came back.
    """

    folder: Path
    port: int
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://{HOST_ADDRESS}:{self.port}"

    @property
    def uri_for_pods(self) -> str:
        """The same: it listens on the bridge."""
        return self.uri

    def start(self) -> None:
        """Start it and wait until it answers."""
        environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        environment.pop("MLFLOW_TRACKING_URI", None)
        with (self.folder / "mlflow.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), env=environment, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self._answers, f"MLflow answers (see {self.folder}/mlflow.log)", _STARTS_WITHIN_S, interval=0.3)

    def stop(self) -> None:
        """Take it away at once; what it has acknowledged stays."""
        if self._process is not None:
            os.killpg(self._process.pid, 9)
            self._process.wait()
            self._process = None

    def _command(self) -> list[str]:
        where = ["--host", HOST_ADDRESS, "--port", str(self.port), "--allowed-hosts", f"{HOST_ADDRESS}:{self.port}"]
        kept = [
            "--backend-store-uri",
            f"sqlite:///{self.folder}/mlflow.db",
            "--artifacts-destination",
            f"{self.folder}/artifacts",
        ]
        return [sys.executable, "-m", "mlflow", "server", "--workers", "1", *where, *kept]

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=2) as answer:  # noqa: S310 - our own server
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
