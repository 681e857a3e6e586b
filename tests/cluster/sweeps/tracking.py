"""An MLflow server that pods and host reach, and that may go away and come back."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.cluster.layout import HOST_ADDRESS
from tests.cluster.processes import wait_until

_STARTS_WITHIN_S: Final = 120.0


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
        """Its address, for pods and for the host."""
        return f"http://{HOST_ADDRESS}:{self.port}"

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
