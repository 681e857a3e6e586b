"""An MLflow server with a run for each trial, and new points of every run while the controller looks on.

Runs and points are put into the server's database in bulk: what is measured is reading them, and thousands of trainers
with an HTTP connection each would leave this machine nothing for that.
"""

import itertools
import math
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from mlflow.store.tracking.dbmodels.models import SqlLatestMetric, SqlMetric, SqlParam, SqlRun, SqlTag
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient
from sqlalchemy import Engine, bindparam, insert, update
from sqlalchemy.exc import OperationalError

from controllers.worlds.local.mlflow_server import LocalMlflow
from mlflow_hooks import contract

_STEPS: Final = 1500
_STEPS_PER_S: Final = 2.5
_PACES_S: Final = (5.0, 120.0, 900.0)
_EVERY_S: Final = 1.0
_BATCH: Final = 500
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrackedTrial:
    """A trial's run. ``number`` counts over all sweeps."""

    trial_id: str
    experiment: str
    learning_rate: str
    number: int
    run_id: str

    def metrics(self, elapsed: float) -> dict[str, float]:
        """Return what its trainer reports after so many seconds; trials learn at three different paces."""
        loss = 0.1 + 2.0 * math.exp(-elapsed / _PACES_S[self.number % len(_PACES_S)])
        return {"loss": loss, "accuracy": 1 - loss / 4, contract.METRIC_CPU_SECONDS: 0.1 * elapsed}


class Tracking:
    """A context manager: the server runs inside it. Points arrive from ``begin`` on.

    Args:
        folder: of the server's database and artifacts.
        report_every: seconds between two points of each trial.
    """

    def __init__(self, folder: Path, report_every: float) -> None:
        self._folder = folder
        self._server = LocalMlflow(folder)
        self._report_every = report_every
        self._trials: Sequence[TrackedTrial] = ()
        self._began = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trainers", daemon=True)
        self.points = 0

    @property
    def uri(self) -> str:
        """Address of the server."""
        return self._server.uri

    @property
    def pid(self) -> int:
        """Id of the server's process."""
        return self._server.pid

    def __enter__(self) -> Self:
        store: Any = SqlAlchemyStore  # its constructor has no types
        self._engine: Engine = store(self._server.store, str(self._folder / "artifacts")).engine
        self._server.start()
        self._server.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=60)
        self._engine.dispose()
        self._server.close()

    def begin(self, trials: Sequence[TrackedTrial]) -> None:
        """Make the trials' runs, then log new points of them until the end."""
        self._trials, self._began = trials, time.time()
        client = MlflowClient(self.uri)
        names = sorted({trial.experiment for trial in trials})
        experiments = {name: client.create_experiment(name) for name in names}
        for some in _batches(trials):
            with self._engine.begin() as connection:
                connection.execute(insert(SqlRun), [self._run_row(t, experiments[t.experiment]) for t in some])
                connection.execute(insert(SqlTag), [row for t in some for row in _tags(t)])
                connection.execute(insert(SqlParam), [row for t in some for row in _params(t)])
                first = [row for t in some for row in self._metric_rows(t, {**t.metrics(0.0), **_once(t)})]
                connection.execute(insert(SqlMetric), first)
                connection.execute(insert(SqlLatestMetric), first)
        self._thread.start()

    def _run_row(self, trial: TrackedTrial, experiment: str) -> Row:
        return {
            "run_uuid": trial.run_id,
            "name": trial.trial_id.partition(".")[2],
            "user_id": "trainer",
            "source_type": "LOCAL",
            "source_name": "/usr/lib/python3/vae.py",
            "status": "RUNNING",
            "lifecycle_stage": "active",
            "start_time": round(self._began * 1000),
            "experiment_id": int(experiment),
            "artifact_uri": f"mlflow-artifacts:/{experiment}/{trial.run_id}/artifacts",
        }

    def _metric_rows(self, trial: TrackedTrial, metrics: Mapping[str, float]) -> list[Row]:
        now = time.time()
        step = round((now - self._began) * _STEPS_PER_S)
        return [
            {
                "key": key,
                "value": value,
                "timestamp": round(now * 1000),
                "step": step,
                "is_nan": False,
                "run_uuid": trial.run_id,
            }
            for key, value in metrics.items()
        ]

    def _run(self) -> None:
        """Let the trials report in turn, those of one second together."""
        share = max(1, round(len(self._trials) * _EVERY_S / self._report_every))
        turns = itertools.cycle([self._trials[i : i + share] for i in range(0, len(self._trials), share)])
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                self._report(next(turns))
            except OperationalError:  # the server holds the database; these trials report in their next turn
                continue
            due += _EVERY_S
            self._stop.wait(max(0.0, due - time.monotonic()))

    def _report(self, trials: Sequence[TrackedTrial]) -> None:
        elapsed = time.time() - self._began
        rows = [row for trial in trials for row in self._metric_rows(trial, trial.metrics(elapsed))]
        table = SqlLatestMetric.__table__
        newest = update(table).where(table.c.key == bindparam("k"), table.c.run_uuid == bindparam("r"))
        values = newest.values({name: bindparam(f"new_{name}") for name in ("value", "timestamp", "step")})
        changes = [
            {"k": r["key"], "r": r["run_uuid"], **{f"new_{name}": r[name] for name in ("value", "timestamp", "step")}}
            for r in rows
        ]
        with self._engine.begin() as connection:
            connection.execute(insert(SqlMetric), rows)
            connection.execute(values, changes)
        self.points += len(rows)


def new_run(trial_id: str, experiment: str, learning_rate: str, number: int) -> TrackedTrial:
    """Return a trial with a run id of its own."""
    return TrackedTrial(trial_id, experiment, learning_rate, number, uuid.uuid4().hex)


def _batches(trials: Sequence[TrackedTrial]) -> Iterable[Sequence[TrackedTrial]]:
    return (trials[start : start + _BATCH] for start in range(0, len(trials), _BATCH))


def _once(trial: TrackedTrial) -> dict[str, float]:
    first = trial.metrics(0.0)["loss"]
    return {contract.METRIC_OBJECTIVE_FIRST: first, contract.METRIC_STEPS_TOTAL: float(_STEPS)}


def _tags(trial: TrackedTrial) -> list[Row]:
    values = {
        contract.TAG_TRIAL_ID: trial.trial_id,
        contract.TAG_SWEEP_ID: trial.trial_id.rpartition(".")[0],
        "mlflow.runName": trial.trial_id.partition(".")[2],
        "mlflow.user": "trainer",
        "mlflow.source.name": "/usr/lib/python3/vae.py",
        "mlflow.source.type": "LOCAL",
    }
    return [{"key": key, "value": value, "run_uuid": trial.run_id} for key, value in values.items()]


def _params(trial: TrackedTrial) -> list[Row]:
    return [{"key": "lr", "value": trial.learning_rate, "run_uuid": trial.run_id}]
