"""The MLflow run of a trial that is about to start: found, or made with its parameters under that of its sweep.

A script that knows nothing of our hooks logs into it, where ``MLFLOW_RUN_ID`` names it.
"""

from collections.abc import Mapping
from typing import Any, Final

from mlflow.entities import Param, RunStatus
from mlflow.tracking import MlflowClient

from controllers.tracking.sweep_runs import SweepRun
from mlflow_hooks import contract
from mlflow_hooks.state_folder import sendable

_LONGEST: Final = 6000
_MOST: Final = 100
"""Characters of a parameter, and parameters of one call, that MLflow takes."""


def open_trial_run(
    client: MlflowClient, sweep: SweepRun, trial: str, params: Mapping[str, Any], *, may_exist: bool
) -> str:
    """Return the id of the run of ``trial``; the oldest counts, as for the hooks.

    Args:
        client: of the tracking server.
        sweep: the parent run.
        trial: the trial's id.
        params: its hyperparameters, written once.
        may_exist: whether to look for one first.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """
    if may_exist:
        wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{trial}'"
        order = ["attributes.start_time ASC", "attributes.run_id ASC"]
        found = client.search_runs([sweep.experiment_id], wanted, max_results=1, order_by=order)
        if found:
            return str(found[0].info.run_id)
    tags = {
        contract.TAG_TRIAL_ID: trial,
        contract.TAG_SWEEP_ID: sweep.sweep_id,
        "mlflow.parentRunId": sweep.run_id,
    }
    run = client.create_run(sweep.experiment_id, run_name=trial.rpartition(".")[2], tags=tags)
    run_id = str(run.info.run_id)
    told = [Param(sendable(key), sendable(value)[:_LONGEST]) for key, value in params.items()]
    for start in range(0, len(told), _MOST):
        client.log_batch(run_id, params=told[start : start + _MOST])
    return run_id


def end_runs_left_open(client: MlflowClient, sweep: SweepRun, succeeded: Mapping[str, bool]) -> None:
    """End the runs of trials that nobody else ends: those of scripts that were killed, or never used MLflow.

    Args:
        client: of the tracking server.
        sweep: the parent run.
        succeeded: whether each trial, by its id, came to a good end.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """
    running = RunStatus.to_string(RunStatus.RUNNING)
    wanted = f"tags.`mlflow.parentRunId` = '{sweep.run_id}' AND attributes.status = '{running}'"
    for run in client.search_runs([sweep.experiment_id], wanted, max_results=1000):
        ended_well = succeeded.get(run.data.tags.get(contract.TAG_TRIAL_ID, ""))
        if ended_well is not None:
            client.set_terminated(run.info.run_id, "FINISHED" if ended_well else "FAILED")
