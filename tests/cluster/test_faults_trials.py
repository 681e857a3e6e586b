"""Trials that do not do their part of a move, and checkpoints that are not whole."""

import pytest

from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.proofs import MOVED, check_nothing_left, check_whole

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.faults, pytest.mark.timeout(600)]


def test_a_trial_that_ignores_the_request_to_leave_is_killed_and_resumes_from_its_last_checkpoint(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(steps=240, deaf="yes")
    bench.wait_all_training(workflow, steps=20)
    pod, target = bench.begin_move(workflow, "t001")
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    first, second = bench.pods.of(workflow.name, "t001")
    assert (first.uid, first.exit_code) == (pod.uid, 137)
    assert second.node == target
    assert bench.resumed_at(second) > 0
    check_nothing_left(bench, workflow)


def test_a_checkpoint_that_was_cut_in_half_is_left_for_the_one_before(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(steps=160)
    bench.wait_all_training(workflow, steps=30)
    bench.wait(lambda: bench.adopted(workflow), "the controller steers the workflow", 60)
    with bench.argo_away():
        pod, _ = bench.begin_move(workflow, "t001")
        bench.wait(lambda: pod.exit_code == MOVED, "the attempt has left", 60)
        before, newest = sorted((bench.trial_folder(workflow, "t001") / "checkpoints").glob("step-*"))
        (weights,) = newest.rglob("weights.json")
        weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    _, second = bench.pods.of(workflow.name, "t001")
    assert f"checkpoint {newest.name} is broken" in bench.logs(second)
    assert bench.resumed_at(second) == int(before.name.removeprefix("step-"))
    check_nothing_left(bench, workflow)
