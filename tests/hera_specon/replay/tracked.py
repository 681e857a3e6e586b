"""Sweeps in MLflow that were not ours: runs with a metric and timestamps."""

import math
from pathlib import Path

from mlflow.tracking import MlflowClient

START_MS = 1_700_000_000_000
STEPS = 50


def new_client(folder: Path) -> MlflowClient:
    """Return a client of an empty MLflow in ``folder``."""
    return MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")


def log_run(  # noqa: PLR0913 - what a run may be like
    client: MlflowClient,
    experiment: str,
    name: str,
    *,
    at_s: float = 0.0,
    seconds: float = 100.0,
    parent: str | None = None,
    metrics: tuple[str, ...] = ("loss",),
    finished: bool = True,
    stepless: bool = False,
) -> str:
    """Log a run of fifty points of each metric; ``accuracy`` rises, all others fall."""
    start = START_MS + round(at_s * 1000)
    tags = {"mlflow.parentRunId": parent} if parent else {}
    run = client.create_run(experiment, start_time=start, run_name=name, tags=tags).info.run_id
    for metric in metrics:
        for step in range(STEPS):
            value = math.exp(-step / 10)
            value = math.nan if step == 20 else 1 - value if metric == "accuracy" else value
            at = start + round((step + 1) * seconds / STEPS * 1000)
            client.log_metric(run, metric, value, at, 0 if stepless else step)
    if finished:
        client.set_terminated(run, "FINISHED", start + round(seconds * 1000))
    return str(run)


def log_sweep(client: MlflowClient, experiment_name: str) -> tuple[str, str]:
    """Log a parent run with four nested runs, one every ten seconds; return the ids of experiment and parent."""
    experiment = client.create_experiment(experiment_name)
    parent = client.create_run(experiment, start_time=START_MS, run_name="sweep").info.run_id
    for number in range(4):
        log_run(client, experiment, f"trial {number}", at_s=10.0 * number, parent=parent)
    client.set_terminated(parent)
    return str(experiment), str(parent)
