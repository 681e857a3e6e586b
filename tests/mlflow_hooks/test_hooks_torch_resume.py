"""A PyTorch training that is interrupted and goes on is the training that never was."""

import importlib.util
import json

import pytest
from mlflow import MlflowClient

from tests.mlflow_hooks.hook_jobs import RunJob, Server

pytestmark = [
    pytest.mark.pytorch,
    pytest.mark.slow,
    # Not imported here: the trainings are processes of their own.
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the pytorch extra"),
]
STEPS = 60


def history(uri: str, trial_id: str, key: str) -> list[tuple[int, float]]:
    client = MlflowClient(uri)
    found = client.get_experiment_by_name("moves")
    assert found
    runs = client.search_runs([found.experiment_id], f"tags.`specon.trial_id` = '{trial_id}'")
    assert [run.info.status for run in runs] == ["FINISHED"]
    assert runs[0].data.params == {"lr": "0.01"}
    assert runs[0].data.tags["mlflow.parentRunId"] == "parent"
    return sorted((metric.step, metric.value) for metric in client.get_metric_history(runs[0].info.run_id, key))


@pytest.mark.parametrize("first", ["23:SIGTERM", "31:SIGKILL"])
def test_weights_and_history_are_those_of_an_uninterrupted_training(
    run_job: RunJob, mlflow_server: Server, first: str
) -> None:
    name = first.replace(":", "-")
    more = {
        "MLFLOW_TRACKING_URI": mlflow_server.uri,
        "MLFLOW_EXPERIMENT_NAME": "moves",
        "SPECON_PARENT_RUN_ID": "parent",
        "SPECON_TRIAL_PARAMS": json.dumps({"lr": 0.01}),
        "OMP_NUM_THREADS": "1",  # other numbers of threads give other rounding errors
    }
    whole = run_job("torch", f"whole.{name}", **more)
    broken_off = run_job("torch", f"moved.{name}", JOB_SIGNAL=first, **more)
    moved = run_job("torch", f"moved.{name}", **more)

    assert (whole.code, broken_off.code, moved.code) == (0, 75 if "TERM" in first else -9, 0)
    assert 0 < int(moved.out["start"]) <= int(first.partition(":")[0]) + 1
    assert moved.out.keys() == {"start", "weights"}  # nothing of ours or MLflow's on stdout
    assert moved.out["weights"] == whole.out["weights"]
    for key in ("loss", "rate"):
        expected = history(mlflow_server.uri, f"whole.{name}", key)
        assert [step for step, _ in expected] == list(range(STEPS))
        assert history(mlflow_server.uri, f"moved.{name}", key) == expected
