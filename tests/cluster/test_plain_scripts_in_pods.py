"""A script that knows nothing but MLflow, in pods: its runs are found wherever it makes them."""

import json

import pytest
from click.testing import CliRunner
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from hera_specon.cli import main
from tests.cluster.sweeps import plain_sweep
from tests.cluster.sweeps.bench import Bench, Workflow

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


def runs_of(bench: Bench, workflow: Workflow, trial: str, tag: str = "trial_id") -> list[Run]:
    client = MlflowClient(bench.tracking.uri)
    everywhere = [one.experiment_id for one in client.search_experiments()]
    wanted = f"tags.`specon.{tag}` = '{workflow.uid}.plain.{trial}'"
    return list(client.search_runs(everywhere, wanted))


def values_of(bench: Bench, run: Run) -> list[tuple[int, float]]:
    history = MlflowClient(bench.tracking.uri).get_metric_history(run.info.run_id, "loss")
    return sorted((point.step, round(point.value, 6)) for point in history)


def test_a_script_that_names_its_own_experiment_begins_again_or_goes_on_in_a_run_that_counts(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(plain_sweep)
    bench.wait(lambda: bench.phase(workflow) in {"Succeeded", "Failed"}, "the workflow is over", 240)
    assert bench.phase(workflow) == "Succeeded", bench.story()
    client = MlflowClient(bench.tracking.uri)

    def settled() -> bool:
        return all(len(runs_of(bench, workflow, trial)) == 1 for trial in ("t000", "t001"))

    bench.wait(settled, "the controller has settled the runs", 60)
    (again,), (went_on,) = (runs_of(bench, workflow, trial) for trial in ("t000", "t001"))
    assert values_of(bench, again) == [(step, round(0.1 * (10 - step), 6)) for step in range(plain_sweep.STEPS)]
    assert values_of(bench, went_on) == [(step, round(0.2 * (10 - step), 6)) for step in range(plain_sweep.STEPS)]
    assert client.get_experiment(again.info.experiment_id).name == plain_sweep.EXPERIMENT
    assert client.get_experiment(went_on.info.experiment_id).name == "plain"
    assert [run.data.params for run in (again, went_on)] == [{"lr": "0.10"}, {"lr": "0.20"}]
    # The attempt that failed stays to be looked at, and is none of the trial's runs.
    (before,) = runs_of(bench, workflow, "t000", "part_of")
    assert len(values_of(bench, before)) == 3

    access = ["--kubeconfig", str(bench.cluster.kubeconfig), "-n", bench.namespace]
    access += ["--mlflow-tracking-uri", bench.tracking.uri]
    told = CliRunner().invoke(main, ["status", workflow.name, "--json", *access])
    assert told.exit_code == 0, told.stderr
    assert [trial["phase"] for trial in json.loads(told.stdout)["trials"]] == ["succeeded"] * 2
