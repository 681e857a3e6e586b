"""What a sweep leans on goes away for a while: the API server, Argo's controller, MLflow."""

import time

import pytest

from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.proofs import MOVED, check_nothing_left, check_whole
from tests.cluster.sweeps.tracking import Tracking

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.faults, pytest.mark.timeout(600)]

AWAY_S = 60.0


def test_a_move_survives_a_restart_of_the_api_server(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(steps=200)
    bench.wait_all_training(workflow)
    pod, target = bench.begin_move(workflow, "t001")
    bench.cluster.restart_apiserver()
    again, later = bench.begin_move(workflow, "t002")
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert [attempt.node for attempt in bench.pods.of(workflow.name, "t001")] == [pod.node, target]
    assert [attempt.node for attempt in bench.pods.of(workflow.name, "t002")] == [again.node, later]
    check_nothing_left(bench, workflow)


def test_a_move_survives_a_restart_of_argos_controller_in_the_middle_of_it(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(steps=160)
    bench.wait_all_training(workflow)
    bench.wait(lambda: bench.adopted(workflow), "the controller steers the workflow", 60)
    with bench.argo_away():
        pod, target = bench.begin_move(workflow, "t001")
        bench.wait(lambda: pod.exit_code == MOVED, "the attempt has left", 60)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert [attempt.node for attempt in bench.pods.of(workflow.name, "t001")] == [pod.node, target]
    check_nothing_left(bench, workflow)


def test_trials_that_end_while_mlflow_is_away_wait_for_it(bench: Bench, tracking: Tracking) -> None:
    workflow = bench.submit(steps=80)
    bench.wait_all_training(workflow)
    tracking.stop()
    try:
        ended = lambda: all(bench.steps_done(workflow, trial) == workflow.steps for trial in workflow.trials)  # noqa: E731
        bench.wait(ended, "every trial has made its last step", 90)
        time.sleep(AWAY_S / 2)
    finally:
        tracking.start()
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)


def test_what_trials_log_while_mlflow_is_away_arrives_once_when_it_is_back(bench: Bench, tracking: Tracking) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(steps=320)
    bench.wait_all_training(workflow)
    tracking.stop()
    try:
        pod, target = bench.begin_move(workflow, "t001")
        time.sleep(AWAY_S)
    finally:
        tracking.start()
    assert bench.phase(workflow) == "Running", "the trials should outlast MLflow's absence"
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert [attempt.node for attempt in bench.pods.of(workflow.name, "t001")] == [pod.node, target]
    check_nothing_left(bench, workflow)
