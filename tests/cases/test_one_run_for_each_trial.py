"""A controller that is killed, or answered too late, while it makes a trial's run: that with the data is believed."""

import pytest
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.sweep_runs import SweepRun
from controllers.tracking.trial_runs import add_params, end_runs_left_open, open_trial_run
from mlflow_hooks import contract
from mlflow_hooks.tracking_server import LibraryServer

TRIAL = "uid.s.a"


def parent(client: MlflowClient, name: str) -> SweepRun:
    where = str(client.create_experiment(name))
    return SweepRun("uid.s", where, str(client.create_run(where).info.run_id))


def made(client: MlflowClient, sweep: SweepRun, at_ms: int, loss: float | None = None) -> str:
    tags = {contract.TAG_TRIAL_ID: TRIAL, contract.TAG_SWEEP_ID: "uid.s", "mlflow.parentRunId": sweep.run_id}
    run = str(client.create_run(sweep.experiment_id, start_time=at_ms, tags=tags).info.run_id)
    if loss is not None:
        client.log_batch(run, metrics=[Metric("loss", loss, at_ms, 1)])
    return run


def test_an_older_run_without_data_is_not_believed(client: MlflowClient) -> None:
    sweep = parent(client, "older and empty")
    made(client, sweep, 1000)
    own = made(client, sweep, 2000, loss=0.5)
    made(client, sweep, 3000)
    scope = Scope([sweep.experiment_id], "uid.")
    source = MlflowSource(client, lambda: scope, lambda: {TrialId(TRIAL): "loss"}, float)
    assert [sample.value for sample in source.poll().values()] == [0.5]
    assert source.run_ids == {TrialId(TRIAL): own}
    assert open_trial_run(client, sweep, TRIAL, {}, may_exist=True) == own


def test_the_hooks_go_on_with_the_run_that_has_data(client: MlflowClient, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = parent(client, "of the hooks")
    empty, own = made(client, sweep, 1000), made(client, sweep, 2000, loss=0.5)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(client.tracking_uri))
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{TRIAL}'"
    assert LibraryServer().runs(sweep.experiment_id, wanted, 20) == [own, empty]


def test_at_the_end_the_empty_twin_is_gone_and_no_run_is_left_open(client: MlflowClient) -> None:
    sweep = parent(client, "twins")
    empty, own = made(client, sweep, 1000), made(client, sweep, 2000, loss=0.5)
    end_runs_left_open(client, sweep, {TRIAL: True})
    assert client.get_run(empty).info.lifecycle_stage == "deleted"
    assert client.get_run(own).info.status == "FINISHED"


def test_the_only_run_of_a_trial_is_ended_though_it_logged_nothing(client: MlflowClient) -> None:
    sweep = parent(client, "an only run")
    own = made(client, sweep, 1000)
    end_runs_left_open(client, sweep, {TRIAL: False})
    assert (client.get_run(own).info.lifecycle_stage, client.get_run(own).info.status) == ("active", "FAILED")


def test_a_run_that_was_made_though_nobody_answered_is_found(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = parent(client, "late answer")
    create = client.create_run

    def late(*arguments: object, **named: object) -> None:
        create(*arguments, **named)  # type: ignore[arg-type] # whatever it is called with
        message = "timed out"
        raise MlflowException(message)

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_run", late)
        with pytest.raises(MlflowException):
            open_trial_run(client, sweep, TRIAL, {"k": 1}, may_exist=True)
    found = open_trial_run(client, sweep, TRIAL, {"k": 1}, may_exist=True)
    add_params(client, sweep, [sweep.experiment_id], {TRIAL: {}})
    (only,) = client.search_runs([sweep.experiment_id], f"tags.`{contract.TAG_TRIAL_ID}` = '{TRIAL}'")
    assert (only.info.run_id, only.data.params) == (found, {"k": "1"})
