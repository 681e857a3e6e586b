"""A sweep of two objectives on a real cluster: its search, its front in MLflow and in ``specon status``."""

import json

import pytest
from click.testing import CliRunner
from mlflow.tracking import MlflowClient

from controllers.core.aims import pareto_front
from controllers.tracking.front_tags import TAG_ON_FRONT
from hera_specon.cli import main
from mlflow_hooks import contract
from tests.cluster.sweeps import front_sweep
from tests.cluster.sweeps.bench import Bench

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(500)]


def test_a_sweep_of_two_objectives_ends_with_its_front_in_mlflow_and_status(bench: Bench) -> None:
    bench.controller("ahead").start().wait_ready()
    workflow = bench.submit(front_sweep)
    bench.wait_for_end(workflow)
    assert bench.phase(workflow) == "Succeeded", bench.story()

    client = MlflowClient(bench.tracking.uri)
    experiment = client.get_experiment_by_name(front_sweep.NAME)
    assert experiment is not None
    ours = f"tags.`{contract.TAG_SWEEP_ID}` = '{workflow.uid}.{front_sweep.NAME}'"

    def parent_tags() -> dict[str, str]:
        runs = client.search_runs([experiment.experiment_id], f"{ours} AND tags.`specon.policy` != ''")
        return dict(runs[0].data.tags) if runs else {}

    bench.wait(lambda: "specon.front" in parent_tags(), "the record of the sweep is closed", 90)
    runs = client.search_runs([experiment.experiment_id], f"{ours} AND tags.`{contract.TAG_TRIAL_ID}` != ''")
    values = {run.data.tags[contract.TAG_TRIAL_ID]: run.data.metrics for run in runs}
    assert len(values) == len(front_sweep.RATES)
    kept = sorted(trial for trial, found in values.items() if found["memory_mb"] <= 90)
    front = pareto_front([(values[trial]["loss"], -values[trial]["speed"]) for trial in kept])
    expected = {kept[place] for place in front}

    marked = {run.data.tags[contract.TAG_TRIAL_ID] for run in runs if TAG_ON_FRONT in run.data.tags}
    assert marked == expected
    short = {trial.partition(".")[2] for trial in expected}
    assert set(json.loads(parent_tags()["specon.front"])) == short

    access = ["--kubeconfig", str(bench.cluster.kubeconfig), "-n", bench.namespace]
    access += ["--mlflow-tracking-uri", bench.tracking.uri]
    told = CliRunner().invoke(main, ["status", workflow.name, "--json", *access])
    assert told.exit_code == 0, told.stderr
    assert set(json.loads(told.stdout)["front"][front_sweep.NAME]) == short
