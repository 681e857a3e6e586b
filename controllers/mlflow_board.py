"""MLflow as the place to watch: a parent run per sweep."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mlflow.entities import Run, RunStatus
from mlflow.tracking import MlflowClient

from mlflow_hooks import contract


@dataclass(frozen=True, slots=True)
class SweepRun:
    """Where a sweep stands in MLflow."""

    sweep_id: str
    experiment_id: str
    run_id: str


def open_sweep(client: MlflowClient, sweep_id: str, experiment: str, name: str, policy: str) -> SweepRun:
    """Find or create the parent run of a sweep; a resumed sweep continues in the run it had."""
    found = client.get_experiment_by_name(experiment)
    experiment_id = found.experiment_id if found else client.create_experiment(experiment)
    parent = _parent(client, sweep_id, experiment_id, policy)
    if parent is not None:
        client.update_run(parent.info.run_id, status="RUNNING")
        return SweepRun(sweep_id, experiment_id, parent.info.run_id)
    tags = {contract.TAG_SWEEP_ID: sweep_id, "specon.policy": policy}
    run = client.create_run(experiment_id, run_name=name, tags=tags)
    return SweepRun(sweep_id, experiment_id, run.info.run_id)


def sweep_is_closed(client: MlflowClient, sweep_id: str, experiment: str, policy: str) -> bool:
    """Return whether the sweep has a parent run, and that has ended."""
    found = client.get_experiment_by_name(experiment)
    parent = _parent(client, sweep_id, found.experiment_id, policy) if found else None
    return parent is not None and RunStatus.is_terminated(RunStatus.from_string(parent.info.status))


def close_sweep(
    client: MlflowClient,
    sweep: SweepRun,
    figures: Mapping[str, float],
    report: Path | None,
    status: Literal["FINISHED", "FAILED", "KILLED"] = "FINISHED",
) -> None:
    """Log what the sweep came to and end its parent run."""
    for key, value in figures.items():
        client.log_metric(sweep.run_id, key, value)
    if report is not None:
        client.log_artifact(sweep.run_id, str(report))
    client.set_terminated(sweep.run_id, status)


def _parent(client: MlflowClient, sweep_id: str, experiment_id: str, policy: str) -> Run | None:
    wanted = f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep_id}' AND tags.`specon.policy` = '{policy}'"
    found = client.search_runs([experiment_id], wanted, max_results=1)
    return found[0] if found else None
