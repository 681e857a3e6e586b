"""Which MLflow run is a trial's: the one its folder names, else the one tagged with its id, else a new one."""

from pathlib import Path
from typing import TYPE_CHECKING

from mlflow_hooks import contract
from mlflow_hooks.files import report
from mlflow_hooks.trialfile import Identity, Run, forget_run, read_ending, read_run, write_run

if TYPE_CHECKING:
    from mlflow import MlflowClient

_PARAMS_PER_CALL = 100
_LONGEST_PARAM = 6000
_MOST_DUPLICATES = 20


def open_run(client: "MlflowClient", folder: Path, identity: Identity) -> str:
    """Find or create the trial's run, give it its parameters once, and return its id.

    A run that goes on is set to RUNNING again, unless the trial has ended.

    Raises:
        MlflowException: MLflow is away or refuses; nothing is half done, call again.
    """
    run = _remembered(client, folder) or _found(client, identity) or _created(client, identity)
    write_run(folder, run)
    if not run.has_params:
        _log_params(client, run.run_id, identity)
        write_run(folder, Run(run.run_id, has_params=True))
    return run.run_id


def _remembered(client: "MlflowClient", folder: Path) -> Run | None:
    from mlflow.exceptions import MlflowException  # noqa: PLC0415 - MLflow is imported only by who sends

    run = read_run(folder)
    try:
        if run and read_ending(folder) is None:
            client.update_run(run.run_id, status="RUNNING")
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        report(f"MLflow has no run {run.run_id if run else None} any more; its trial gets another one")
        forget_run(folder)
        return None
    return run


def _found(client: "MlflowClient", identity: Identity) -> Run | None:
    runs = _tagged(client, identity)
    if not runs:
        return None
    client.update_run(runs[0], status="RUNNING")
    return Run(runs[0])


def _tagged(client: "MlflowClient", identity: Identity) -> list[str]:
    """Return the ids of the runs with the trial's id, the oldest first: every attempt sees the same order."""
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{identity.trial_id}'"
    oldest = ["attributes.start_time ASC", "attributes.run_id ASC"]
    experiment = _experiment_id(client, identity.experiment)
    runs = client.search_runs([experiment], wanted, max_results=_MOST_DUPLICATES, order_by=oldest)
    return [run.info.run_id for run in runs]


def _created(client: "MlflowClient", identity: Identity) -> Run:
    tags = {
        contract.TAG_TRIAL_ID: identity.trial_id,
        contract.TAG_SWEEP_ID: identity.sweep_id,
        "mlflow.parentRunId": identity.parent_run_id,
    }
    created = client.create_run(
        _experiment_id(client, identity.experiment),
        tags={name: value for name, value in tags.items() if value},
        run_name=identity.run_name,
    ).info.run_id
    # A request that timed out is sent again, though the server may have heard the first: one run stays, the oldest.
    kept, *surplus = _tagged(client, identity) or [created]
    for run_id in surplus:
        client.delete_run(run_id)
    return Run(kept)


def _experiment_id(client: "MlflowClient", name: str) -> str:
    from mlflow.exceptions import MlflowException  # noqa: PLC0415 - MLflow is imported only by who sends

    found = client.get_experiment_by_name(name)
    if found:
        return str(found.experiment_id)
    try:
        return str(client.create_experiment(name))
    except MlflowException as error:
        found = client.get_experiment_by_name(name)
        if error.error_code == "RESOURCE_ALREADY_EXISTS" and found:  # another trial was first
            return str(found.experiment_id)
        raise


def _log_params(client: "MlflowClient", run_id: str, identity: Identity) -> None:
    from mlflow.entities import Param  # noqa: PLC0415 - MLflow is imported only by who sends
    from mlflow.exceptions import MlflowException  # noqa: PLC0415

    params = [Param(str(key), str(value)[:_LONGEST_PARAM]) for key, value in identity.params.items()]
    for start in range(0, len(params), _PARAMS_PER_CALL):
        try:
            client.log_batch(run_id, params=params[start : start + _PARAMS_PER_CALL], synchronous=True)
        except MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE":
                raise
            report(f"MLflow refuses parameters of {identity.trial_id}: {error.message}")
