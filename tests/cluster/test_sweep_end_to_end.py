"""A sweep through specon submit, Argo, real kubelets, MLflow and the controller, with nothing going wrong."""

import pytest

from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole, moves

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def test_a_sweep_without_a_controller_runs_as_it_would_without_us(bench: Bench) -> None:
    workflow = bench.submit(steps=40)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert all(len(bench.pods.of(workflow.name, trial)) == 1 for trial in ("t000", "t001", "t002", "t003"))
    check_nothing_left(bench, workflow)


def test_a_trial_that_is_moved_goes_on_on_the_node_that_was_chosen(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit()
    bench.wait_all_training(workflow)
    pod, target = bench.begin_move(workflow, "t001")
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert moves(bench, workflow) == 1
    before, after = bench.pods.of(workflow.name, "t001")
    assert (before.uid, after.node) == (pod.uid, target)
    check_nothing_left(bench, workflow)
