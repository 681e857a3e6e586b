"""The thread that keeps MLflow up to date while the training goes on."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mlflow_hooks.delivery import Delivery
from mlflow_hooks.state_folder import report
from mlflow_hooks.tracking_server import TrackingError

EVERY_S: Final = 1.0
SENDING_SHARE: Final = 0.005
"""Share of one core that sending may take; it sends less often where it would take more."""
LONGEST_BETWEEN_S: Final = 3.0
LONGEST_PAUSE_S: Final = 30.0


class Sender(threading.Thread):
    """Delivers about once a second, or when asked; MLflow away only makes it try less often."""

    def __init__(self, folder: Path, allowed: Callable[[], bool]) -> None:
        super().__init__(name="mlflow-hooks-sender", daemon=True)
        self._delivery = Delivery(folder, allowed)
        self._allowed = allowed
        self._asked = threading.Event()
        self._delivered = threading.Event()
        self._last = threading.Event()
        self._failures = 0
        self._cost_s = 0.0
        self._rest_s = 0.0

    @property
    def run_id(self) -> str | None:
        """The trial's MLflow run, once it is open."""
        return self._delivery.run_id

    def run(self) -> None:
        """Deliver until told that this is the last time, or until the folder is another attempt's."""
        while self._allowed():
            last = self._last.is_set()
            self._asked.clear()
            done = self._tried()
            if last and done:
                self._delivered.set()
                return
            if self._last.is_set():  # it may have been set since it was read
                pause = 0.2
            elif self._failures:
                pause = min(EVERY_S * 2.0 ** min(self._failures, 10), LONGEST_PAUSE_S)
            else:
                pause = min(max(EVERY_S, self._cost_s / SENDING_SHARE), LONGEST_BETWEEN_S)
            self._asked.wait(max(pause, self._rest_s))

    def finish(self, within_s: float) -> bool:
        """Send the rest for at most ``within_s`` seconds, and return whether all arrived."""
        self._last.set()
        self._asked.set()
        return self._delivered.wait(within_s)

    def _tried(self) -> bool:
        began = time.thread_time()
        try:
            self._delivery.deliver()
        except Exception as error:  # noqa: BLE001 - whatever MLflow's client raises must not reach the training
            self._failures += 1
            self._rest_s = error.rest_s if isinstance(error, TrackingError) else 0.0
            if self._failures == 1:
                report(f"MLflow is away ({error}); metrics are kept in {self._delivery.folder} and sent later")
            return False
        if self._failures:
            report("MLflow is back; everything is sent")
        self._failures, self._rest_s = 0, 0.0
        self._cost_s = time.thread_time() - began
        return True


def short_timeouts() -> None:
    """Keep one request short: who repeats it is the sender. What the user has set stays."""
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
