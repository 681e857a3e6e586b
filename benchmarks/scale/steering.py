"""The real controller as a process of its own, and what it tells of itself."""

import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import psutil
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.scale.control_plane import free_ports
from benchmarks.scale.size import NAMESPACE, Size
from controllers.worlds.local.processes import start_tethered

_SEEN_S: Final = 240.0


class SteeringError(Exception):
    """The controller does not do its work. The message names its log."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The controller at one instant: its counters, its memory in bytes, the time and its CPU time in seconds.

    ``ran`` and ``waited`` are of the thread that ticks: on a core, and for one.
    """

    at: float
    memory: int
    cpu: float
    ran: float
    waited: float
    values: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values.get(name, 0.0)


class Steering:
    """A context manager: ``specon controller`` runs inside it, over the sweeps of one namespace."""

    def __init__(self, folder: Path, kubeconfig: Path, tracking_uri: str, size: Size) -> None:
        self._folder = folder
        self._size = size
        self._metrics, health = free_ports(2)
        self._command = [
            *(sys.executable, "-m", "hera_specon.cli", "controller"),
            *("--kubeconfig", str(kubeconfig), "--namespace", NAMESPACE, "--lease-namespace", NAMESPACE),
            *("--mlflow-tracking-uri", tracking_uri, "--policy", size.policy),
            *("--metrics-port", str(self._metrics), "--health-port", str(health), "--log-format", "text"),
        ]

    @property
    def pid(self) -> int:
        """Id of its process."""
        return self._process.pid

    def __enter__(self) -> Self:
        self._process = start_tethered(self._command, dict(os.environ), self._folder / "controller.log")
        if self._size.priority is not None:
            psutil.Process(self.pid).nice(self._size.priority)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()

    def wait_until_it_steers(self) -> Reading:
        """Wait until it has looked at each sweep once, and return its first reading then.

        Raises:
            SteeringError: it ended, or has not within four minutes.
        """
        deadline = time.monotonic() + _SEEN_S
        while time.monotonic() < deadline and self._process.poll() is None:
            reading = self.read()
            if reading is not None and self._steers(reading):
                return reading
            time.sleep(0.5)
        message = f"the controller does not steer {self._size.sweeps} sweeps; see {self._folder / 'controller.log'}"
        raise SteeringError(message)

    def read(self) -> Reading | None:
        """Return how it stands, None where it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=30) as answer:
                page = answer.read().decode()
            process = psutil.Process(self.pid)
            memory, times = process.memory_info().rss, process.cpu_times()
            ran, waited = (int(ns) / 1e9 for ns in Path(f"/proc/{self.pid}/schedstat").read_text().split()[:2])
        except (urllib.error.URLError, OSError, psutil.NoSuchProcess):
            return None
        return Reading(time.monotonic(), memory, times.user + times.system, ran, waited, _values(page))

    def _steers(self, reading: Reading) -> bool:
        size = self._size
        return reading["specon_ticks_total"] >= size.sweeps and reading["specon_trials/running"] >= size.trials


def _values(page: str) -> dict[str, float]:
    """Return each sample by its name, and its labels' values after slashes."""
    samples = (sample for family in text_string_to_metric_families(page) for sample in family.samples)
    return {"/".join((sample.name, *sample.labels.values())): float(sample.value) for sample in samples}
