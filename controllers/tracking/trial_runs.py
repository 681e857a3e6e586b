"""The MLflow run of a trial that is about to start: found, or made with its parameters under that of its sweep.

A script that knows nothing of our hooks logs into it, where ``MLFLOW_RUN_ID`` names it.
"""

from collections.abc import Mapping
from typing import Any, Final

from mlflow.entities import Param, Run, RunStatus
from mlflow.tracking import MlflowClient

from controllers.tracking.sweep_runs import SweepRun
from mlflow_hooks import contract
from mlflow_hooks.state_folder import sendable

_MOST_TWINS: Final = 20
_PAGE: Final = 1000
_MOST_RUNS: Final = 100_000
_LONGEST: Final = 6000
_MOST: Final = 100
"""Characters of a parameter, and parameters of one call, that MLflow takes."""


def open_trial_run(
    client: MlflowClient, sweep: SweepRun, trial: str, params: Mapping[str, Any], *, may_exist: bool
) -> str:
    """Return the id of the run of ``trial``. Of several that with its data counts, else the oldest, as for the hooks.

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
    runs = _runs_of(client, sweep, trial) if may_exist else []
    if runs:
        run = runs[0]
    else:
        tags = {
            contract.TAG_TRIAL_ID: trial,
            contract.TAG_SWEEP_ID: sweep.sweep_id,
            "mlflow.parentRunId": sweep.run_id,
        }
        run = client.create_run(sweep.experiment_id, run_name=trial.rpartition(".")[2], tags=tags)
    run_id = str(run.info.run_id)
    told = [Param(sendable(key), sendable(value)[:_LONGEST]) for key, value in params.items()]
    # Whoever made one that was found may have been killed before it told them.
    told = [param for param in told if param.key not in run.data.params]
    for start in range(0, len(told), _MOST):
        client.log_batch(run_id, params=told[start : start + _MOST])
    return run_id


def _runs_of(client: MlflowClient, sweep: SweepRun, trial: str) -> list[Run]:
    """Return the runs of a trial: those with data first, of equals the oldest."""
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{trial}'"
    order = ["attributes.start_time ASC", "attributes.run_id ASC"]
    found = client.search_runs([sweep.experiment_id], wanted, max_results=_MOST_TWINS, order_by=order)
    return sorted(found, key=lambda run: not run.data.metrics)


def end_runs_left_open(client: MlflowClient, sweep: SweepRun, succeeded: Mapping[str, bool]) -> None:
    """End the runs of trials that nobody else ends: those of scripts that were killed, or never used MLflow.

    One that was left empty beside that with the trial's data is deleted. MLflow keeps what is deleted for a while.

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
    for run in _all(client, sweep, wanted):
        trial = run.data.tags.get(contract.TAG_TRIAL_ID, "")
        if trial not in succeeded:
            continue
        if not run.data.metrics and any(twin.data.metrics for twin in _runs_of(client, sweep, trial)):
            client.delete_run(run.info.run_id)
        else:
            client.set_terminated(run.info.run_id, "FINISHED" if succeeded[trial] else "FAILED")


def _all(client: MlflowClient, sweep: SweepRun, wanted: str) -> list[Run]:
    found: list[Run] = []
    token: str | None = None
    while True:
        page = client.search_runs([sweep.experiment_id], wanted, max_results=_PAGE, page_token=token)
        found += page
        token = page.token
        if not token or len(found) > _MOST_RUNS:
            return found
