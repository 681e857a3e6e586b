"""The real controller as processes of the host, each with the service account's own access."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from tests.cluster.processes import wait_until

_READY_WITHIN_S: Final = 90.0
ROOT: Final = Path(__file__).parents[3]


@dataclass
class ControllerProcess:
    """``specon controller``, as often started and ended as a test wants.

    Attributes:
        arguments: those after ``specon controller``.
        log: where it writes, over all its lives.
        health_port: serves /livez and /readyz, and the port after it /metrics.
        module: the command line that it is.
    """

    arguments: tuple[str, ...]
    log: Path
    health_port: int
    module: str = "hera_specon.cli"
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def start(self) -> "ControllerProcess":
        """Start it; returns at once."""
        ports = ["--health-port", str(self.health_port), "--metrics-port", str(self.health_port + 1)]
        command = [sys.executable, "-m", self.module, "controller", *self.arguments, *ports]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=log, stderr=log)
        return self

    def wait_ready(self) -> None:
        """Wait until it says that it is ready to lead or to stand by."""
        wait_until(self._ready, f"the controller is ready (see {self.log})", _READY_WITHIN_S, interval=0.2)

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None, "the controller was not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it says that it need not be restarted."""
        return bool(self._got(f"http://127.0.0.1:{self.health_port}/livez"))

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to hand over and end."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop it in its tracks, as a machine does that swaps or is suspended."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def metric(self, name: str) -> float | None:
        """Return one of the numbers that it shows to Prometheus; None where it does not answer."""
        text = self._got(f"http://127.0.0.1:{self.health_port + 1}/metrics")
        found = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(found[0]) if found else None

    def lines_since(self, moment: float) -> list[dict[str, Any]]:
        """Return what it logged after ``moment``, in Unix seconds."""
        return [line for line in self.lines() if datetime.fromisoformat(line["ts"]).timestamp() > moment]

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield what it logged; half a line, as a kill leaves it, is left out."""
        for line in self.log.read_text().splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._signal(number)
            self._process.wait(timeout=60)
            self._process = None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "the controller was not started"
        self._process.send_signal(number)

    def _ready(self) -> bool:
        if not self.running:
            message = f"the controller ended: {self.log.read_text()[-2000:]}"
            raise RuntimeError(message)
        return bool(self._got(f"http://127.0.0.1:{self.health_port}/readyz"))

    def _got(self, url: str) -> str:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own controller
                return answer.read().decode() if answer.status == HTTPStatus.OK else ""
        except (urllib.error.URLError, OSError):
            return ""


def environment() -> dict[str, str]:
    """Return the environment of a process that knows nothing of this one's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECON_", "MLFLOW_"))}
    return {**kept, "PYTHONPATH": str(ROOT)}
