"""Sweeps whose trials keep their checkpoints in a bucket, in pods that share no volume."""

from collections.abc import Iterator

import pytest

from tests.cluster import rerun_sweep
from tests.cluster.sweeps import bucket_descent_sweep, bucket_rerun_sweep, bucket_vae_sweep, descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.bucket import bucket_of, histories, wait_for_checkpoint, wait_until_told
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole, moves
from tests.cluster.test_reruns import argo
from tests.mlflow_hooks.object_servers import S3Server

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

MOVED, SUSPENDED = "t001", "t002"


@pytest.fixture
def bucket(bench: Bench) -> Iterator[S3Server]:
    with bucket_of(bench) as server:
        yield server


@pytest.mark.usefixtures("bucket")
def test_trials_are_moved_and_suspended_and_each_step_is_made_once(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(bucket_descent_sweep, steps=240)
    wait_until_told(bench, workflow, descent_sweep.NAME, 10)
    _, target = bench.begin_move(workflow, MOVED)
    bench.specon("pause", workflow.name, SUSPENDED)
    held = bench.running(workflow)[SUSPENDED]
    bench.wait(lambda: held.exit_code is not None, f"{SUSPENDED} has left its node", 90)
    bench.wait(lambda: len(bench.pods.of(workflow.name, MOVED)) > 1, f"{MOVED} goes on", 90)
    bench.specon("resume", workflow.name, "--trial", SUSPENDED)
    bench.wait_for_end(workflow)

    check_whole(bench, workflow, on_volume=False)
    assert moves(bench, workflow, MOVED) == 1
    assert bench.pods.of(workflow.name, MOVED)[-1].node == target
    for trial in (MOVED, SUSPENDED):
        # An attempt that began at its first step would have made the steps before again, unseen in MLflow.
        assert bench.resumed_at(bench.pods.of(workflow.name, trial)[-1]) >= 10
    check_nothing_left(bench, workflow)


@pytest.mark.faults
def test_a_trial_of_a_lost_node_goes_on_elsewhere_from_the_bucket(bench: Bench, bucket: S3Server) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(bucket_descent_sweep, steps=240)
    wait_until_told(bench, workflow, descent_sweep.NAME, 20)
    # Points are there sooner: the first checkpoint goes up after ten seconds.
    wait_for_checkpoint(bench, bucket, f"{workflow.uid}.{descent_sweep.NAME}.{MOVED}")
    lost = bench.running(workflow)[MOVED]
    bench.cluster.lose_node(lost.node)
    try:
        bench.wait(
            lambda: bench.running(workflow).get(MOVED, lost).uid != lost.uid, f"{MOVED} goes on in another pod", 180
        )
        successor = bench.running(workflow)[MOVED]
    finally:
        bench.cluster.return_node(lost.node)
        bench.wait(bench.cluster.are_nodes_ready, "all nodes are back", 90)
    bench.wait_for_end(workflow)

    check_whole(bench, workflow, on_volume=False)
    assert successor.node != lost.node
    assert bench.resumed_at(successor) > 0
    check_nothing_left(bench, workflow)


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    ("how", "options", "goes_on"),
    [
        ("retry", (), True),
        ("resubmit", (), False),
        ("resubmit", ("--parameter", "continue-sweep={uid}"), True),
    ],
)
def test_a_workflow_that_failed_is_rerun(bench: Bench, how: str, options: tuple[str, ...], *, goes_on: bool) -> None:
    failed = bench.submit(bucket_rerun_sweep)
    bench.wait(lambda: bench.phase(failed) == "Failed", "the workflow has failed", 240)
    given = [option.format(uid=failed.uid) for option in options]
    made = argo(bench, how, failed.name, *given, "--parameter", "fails=no")["metadata"]
    again = Workflow(made["name"], made["uid"], rerun_sweep.STEPS, rerun_sweep.RATES)
    bench.wait(lambda: bench.phase(again) == "Succeeded", f"{again.name} has succeeded", 240)

    found = histories(bench, failed if goes_on else again, "rerun")
    began = histories(bench, failed if goes_on else again, "rerun", "began")
    for trial, rate in zip(("t000", "t001"), rerun_sweep.RATES, strict=True):
        points = sorted(found[trial], key=lambda point: point.step)
        assert [point.step for point in points] == list(range(rerun_sweep.STEPS))
        assert points[-1].value == pytest.approx((1 - rate) ** (2 * rerun_sweep.STEPS))
        starts = sorted({point.value for point in began[trial]})
        if goes_on and trial == "t001":
            assert starts[0] == 0
            assert 0 < starts[1] <= rerun_sweep.FAILS_AT
        else:
            assert starts == [0]


@pytest.mark.usefixtures("bucket")
def test_autoencoders_that_are_moved_end_as_those_that_were_not(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    calm = bench.submit(bucket_vae_sweep, steps=bucket_vae_sweep.STEPS)
    bench.wait_for_end(calm)
    moved = bench.submit(bucket_vae_sweep, steps=bucket_vae_sweep.STEPS)
    for trial, steps in (("t000", 20), ("t001", 40)):
        wait_until_told(bench, moved, bucket_vae_sweep.NAME, steps)
        bench.begin_move(moved, trial)
    bench.wait_for_end(moved)

    assert [bench.phase(workflow) for workflow in (calm, moved)] == ["Succeeded"] * 2, bench.story()
    assert [moves(bench, moved, trial) for trial in moved.trials] == [1, 1]
    expected = histories(bench, calm, bucket_vae_sweep.NAME)
    found = histories(bench, moved, bucket_vae_sweep.NAME)
    for trial in moved.trials:
        before, after = ({point.step: point.value for point in each[trial]} for each in (expected, found))
        assert len(found[trial]) == len(after) == bucket_vae_sweep.STEPS
        assert after == pytest.approx(before, rel=1e-9)
