"""What another writes into MLflow under a sweep's name changes neither its record nor what is read of its trials."""

from dataclasses import replace

import pytest
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.sweep_runs import ForeignSweepError, Steering, open_sweep
from mlflow_hooks import contract

VICTIMS = Steering("s · default", "default", "uid", "victim")
BEGAN_MS = 1_000_000


def reported(client: MlflowClient, where: str, trial: str, loss: float, began_ms: int) -> str:
    """Make a run that says it is the trial's; return its id."""
    tags = {contract.TAG_SWEEP_ID: trial.rpartition(".")[0], contract.TAG_TRIAL_ID: trial}
    run = str(client.create_run(where, start_time=began_ms, tags=tags).info.run_id)
    client.log_batch(run, metrics=[Metric("loss", loss, began_ms, 1)])
    return run


def source(client: MlflowClient, where: str) -> MlflowSource:
    objectives = {TrialId("uid.s.a"): "loss"}
    return MlflowSource(client, lambda: Scope([where], "uid."), lambda: objectives, lambda epoch_s: epoch_s)


def test_a_sweep_of_another_namespace_is_not_gone_on_with(client: MlflowClient) -> None:
    first = open_sweep(client, "uid.s", "foreign", VICTIMS)
    for workflow in ("uid", "another"):
        with pytest.raises(ForeignSweepError, match="belongs to namespace 'victim', not to 'attacker'"):
            open_sweep(client, "uid.s", "foreign", replace(VICTIMS, workflow=workflow, namespace="attacker"))
    assert open_sweep(client, "uid.s", "foreign", VICTIMS) == first


def test_of_two_runs_of_one_trial_the_older_is_believed(client: MlflowClient) -> None:
    where = str(client.create_experiment("two runs"))
    own = reported(client, where, "uid.s.a", 0.5, BEGAN_MS)
    reported(client, where, "uid.s.a", 0.0, BEGAN_MS + 1000)
    found = source(client, where)
    assert [sample.value for sample in found.poll().values()] == [0.5]
    assert found.run_ids == {TrialId("uid.s.a"): own}


def test_a_run_that_bears_the_name_of_the_sweep_and_is_of_none_of_its_trials_is_left_alone(
    client: MlflowClient,
) -> None:
    where = str(client.create_experiment("of no trial"))
    reported(client, where, "uid.s.stranger", 0.0, BEGAN_MS)
    found = source(client, where)
    assert found.poll() == {}
    assert found.run_ids == {}
