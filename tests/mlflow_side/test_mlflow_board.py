"""What people see in MLflow: the parent run of a sweep."""

from mlflow.tracking import MlflowClient

from controllers.mlflow_board import close_sweep, open_sweep


def test_a_resumed_sweep_continues_in_its_parent_run(client: MlflowClient) -> None:
    first = open_sweep(client, "uid.s", "resumed", "s · default", "default")
    assert open_sweep(client, "uid.s", "resumed", "s · default", "default") == first
    assert open_sweep(client, "other.s", "resumed", "s · default", "default") != first


def test_a_finished_sweep_shows_its_figures(client: MlflowClient) -> None:
    sweep = open_sweep(client, "uid.s", "finished", "s · default", "default")
    close_sweep(client, sweep, {"specon.makespan_s": 12.5}, None)
    run = client.get_run(sweep.run_id)
    assert (run.info.status, run.data.metrics["specon.makespan_s"]) == ("FINISHED", 12.5)
