"""What people see in MLflow: the parent run of a sweep."""

from dataclasses import replace

from mlflow.tracking import MlflowClient

from controllers.tracking.sweep_runs import Steering, close_sweep, open_sweep, sweep_is_closed

STEERING = Steering("s · default", "default", "uid")


def test_a_resumed_sweep_continues_in_its_parent_run(client: MlflowClient) -> None:
    first = open_sweep(client, "uid.s", "resumed", STEERING)
    assert open_sweep(client, "uid.s", "resumed", STEERING) == first
    assert open_sweep(client, "other.s", "resumed", STEERING) != first


def test_a_workflow_that_continues_another_ones_sweep_has_a_parent_run_of_its_own(client: MlflowClient) -> None:
    first = open_sweep(client, "uid.s", "continued", STEERING)
    later = replace(STEERING, title="t · default", workflow="later")
    assert open_sweep(client, "uid.s", "continued", later) != first
    close_sweep(client, first, {})
    assert sweep_is_closed(client, "uid.s", "continued", STEERING)
    assert not sweep_is_closed(client, "uid.s", "continued", later)


def test_a_finished_sweep_shows_its_figures(client: MlflowClient) -> None:
    sweep = open_sweep(client, "uid.s", "finished", STEERING)
    close_sweep(client, sweep, {"specon.makespan_s": 12.5})
    run = client.get_run(sweep.run_id)
    assert (run.info.status, run.data.metrics["specon.makespan_s"]) == ("FINISHED", 12.5)
