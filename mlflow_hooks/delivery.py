"""From the journal to MLflow: one trial's run is found or made, and gets what it lacks.

Everything here may fail with MLflow's errors at any point and be called again: what was
acknowledged is counted, and MLflow drops a point that is identical to one it has.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mlflow_hooks.files import report
from mlflow_hooks.journal import Point, count_unsent, mark_sent, read_unsent
from mlflow_hooks.runs import open_run
from mlflow_hooks.trialfile import forget_run, read_ending, read_identity, write_ending

if TYPE_CHECKING:
    from mlflow import MlflowClient

BATCH: Final = 1000
"""MLflow takes at most this many entities in one call."""


def _always() -> bool:
    return True


@dataclass(slots=True)
class Delivery:
    """Sends one trial's points. ``allowed`` is asked before each request; once it says no, all ends."""

    folder: Path
    allowed: Callable[[], bool] = _always
    run_id: str | None = field(default=None, init=False)
    _client: "MlflowClient | None" = field(default=None, init=False)

    def deliver(self) -> None:
        """Send all that MLflow has not acknowledged, and how the trial ended where it has.

        Raises:
            MlflowException: MLflow is away or refuses; call again later.
        """
        while self.allowed():
            client, run_id = self._opened()
            points, offset = read_unsent(self.folder, BATCH)
            if not points:
                self._tell_ending(client, run_id)
                return
            self._send(client, run_id, points)
            if self.allowed():
                mark_sent(self.folder, offset)

    def _opened(self) -> "tuple[MlflowClient, str]":
        import mlflow  # noqa: PLC0415 - takes a second, and only who sends needs it

        client = self._client = self._client or mlflow.MlflowClient()
        if self.run_id is None:
            identity = read_identity(self.folder)
            if identity is None:
                message = f"no trial has started in {self.folder}"
                raise FileNotFoundError(message)
            self.run_id = open_run(client, self.folder, identity)
        return client, self.run_id

    def _send(self, client: "MlflowClient", run_id: str, points: list[Point]) -> None:
        from mlflow.entities import Metric  # noqa: PLC0415 - see _opened
        from mlflow.exceptions import MlflowException  # noqa: PLC0415

        metrics = [Metric(point.key, point.value, point.timestamp, point.step) for point in points]
        try:
            client.log_batch(run_id, metrics=metrics, synchronous=True)
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                self._start_over()
            if error.error_code != "INVALID_PARAMETER_VALUE":
                raise
            self._send_around_refused(client, run_id, points, error.message)

    def _send_around_refused(self, client: "MlflowClient", run_id: str, points: list[Point], why: str) -> None:
        """Halve the batch until the point that MLflow will never take stands alone, and leave it out."""
        if len(points) == 1:
            report(f"MLflow refuses {points[0]}: {why}")
            return
        middle = len(points) // 2
        self._send(client, run_id, points[:middle])
        self._send(client, run_id, points[middle:])

    def _start_over(self) -> None:
        """The run is gone, as after a fresh database: another one gets everything from the first point on."""
        forget_run(self.folder)
        mark_sent(self.folder, 0)
        self.run_id = None

    def _tell_ending(self, client: "MlflowClient", run_id: str) -> None:
        ending = read_ending(self.folder)
        if ending is None or ending.told:
            return
        # A script's stdout is its result in Argo; MLflow would add a line with the run's address.
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
        client.set_terminated(run_id, ending.status, ending.timestamp)
        write_ending(self.folder, ending.as_told())


def sending_wanted() -> bool:
    """Return whether the user said where MLflow is (``mlflow.set_tracking_uri`` sets the variable too)."""
    return bool(os.environ.get("MLFLOW_TRACKING_URI"))


def deliver_leftovers(folder: Path, *, deadline_s: float) -> int:
    """Send what a trial that is not running any more left unsent, and how it ended.

    For whoever ran the trial; MLflow is where ``MLFLOW_TRACKING_URI`` says, and without that nothing is sent.

    Args:
        folder: the trial's state folder, ``$SPECON_STATE_ROOT/<trial id>``.
        deadline_s: give up after this many seconds, MLflow away or not.

    Returns:
        How many points are still unsent; a later call may send them.
    """
    if not sending_wanted() or read_identity(folder) is None:
        return count_unsent(folder)
    give_up = time.monotonic() + deadline_s
    delivery = Delivery(folder, allowed=lambda: time.monotonic() < give_up)
    sending = threading.Thread(target=_try_until, args=(delivery, give_up), daemon=True)
    sending.start()  # a thread, since a request may take longer than the time there is
    sending.join(deadline_s)
    return count_unsent(folder)


def _try_until(delivery: Delivery, give_up: float) -> None:
    pause = 0.2
    while time.monotonic() < give_up:
        try:
            delivery.deliver()
        except Exception as error:  # noqa: BLE001 - whatever MLflow's client raises, the next try may work
            report(f"{delivery.folder.name}: MLflow has not taken the rest yet ({error})")
        else:
            return
        time.sleep(max(0.0, min(pause, give_up - time.monotonic())))
        pause *= 2
