"""A sweep on a real cluster that learns from the one before, out of MLflow."""

import pytest
from mlflow.tracking import MlflowClient

from controllers.search.earlier import FIRST
from mlflow_hooks import contract
from tests.cluster.sweeps import warm_sweep
from tests.cluster.sweeps.bench import Bench

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def test_a_second_sweep_of_an_experiment_begins_with_what_the_first_found(bench: Bench) -> None:
    controller = bench.controller("ahead").start()
    controller.wait_ready()
    client = MlflowClient(bench.tracking.uri)
    points: list[set[str]] = []
    for _ in range(2):
        workflow = bench.submit(warm_sweep)
        bench.wait_for_end(workflow)
        assert bench.phase(workflow) == "Succeeded", bench.story()
        experiment = client.get_experiment_by_name(warm_sweep.NAME)
        assert experiment is not None
        ours = f"tags.`{contract.TAG_SWEEP_ID}` = '{workflow.uid}.{warm_sweep.NAME}'"
        runs = client.search_runs(
            [experiment.experiment_id], f"{ours} AND tags.`{contract.TAG_TRIAL_ID}` != ''", max_results=100
        )
        assert len(runs) == len(warm_sweep.RATES), "trials of the first sweep became trials of the second"
        points.append({run.data.params["x"] for run in runs})
    log = controller.log.read_text()
    assert "sweep warm: nothing was learnt before: no trial of an earlier sweep had ended" in log
    assert f"sweep warm: learnt before: {len(warm_sweep.RATES)} trials of earlier sweeps" in log
    assert f"the search takes {len(warm_sweep.RATES)}" in log
    assert len(points[0] & points[1]) == FIRST, "the best of the first sweep are tried again, and the others are new"
