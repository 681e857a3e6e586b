"""Taints, tolerations and node selectors on a cluster: trials are placed and moved only where they may go."""

from collections.abc import Iterator

import pytest

from controllers.worlds.argo.calls.api import NODES
from tests.cluster.sweeps import demanding_descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.demanding_descent_sweep import OF_THE_POOL, POOL
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole, moves

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def dress(bench: Bench, node: str, label: str | None, taints: list[dict[str, str]] | None) -> None:
    bench.api.patch(NODES.path(None, node), {"metadata": {"labels": {POOL: label}}, "spec": {"taints": taints}})


@pytest.fixture
def pool(bench: Bench) -> Iterator[tuple[str, str]]:
    """Two nodes of a pool that no pod may use which does not tolerate its taint."""
    first, second = sorted(bench.cluster.node_names)[-2:]
    taint = {"key": POOL, "value": OF_THE_POOL, "effect": "NoSchedule"}
    for node in (first, second):
        dress(bench, node, OF_THE_POOL, [taint])
    yield first, second
    for node in (first, second):
        dress(bench, node, None, None)


def nodes_used(bench: Bench, workflow: Workflow) -> set[str]:
    return {pod.node for trial in workflow.trials for pod in bench.pods.of(workflow.name, trial)}


def test_trials_that_tolerate_a_tainted_pool_are_placed_on_all_of_it_and_on_nothing_else(
    bench: Bench, pool: tuple[str, str]
) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(demanding_descent_sweep, policy="ahead", steps=60)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert nodes_used(bench, workflow) == set(pool)
    attempts = [pod for trial in workflow.trials for pod in bench.pods.of(workflow.name, trial)]
    assert all(pod.moments["ungated"] > pod.moments["created"] for pod in attempts)
    check_nothing_left(bench, workflow)


def test_a_move_goes_to_a_tainted_node_that_is_tolerated_and_one_to_another_node_stays_in_the_pool(
    bench: Bench, pool: tuple[str, str]
) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(demanding_descent_sweep)
    bench.wait_all_training(workflow)
    bench.wait(lambda: bench.adopted(workflow), "the controller steers the workflow", 60)
    moved, astray = (bench.running(workflow)[trial] for trial in ("t001", "t002"))
    (target,) = set(pool) - {moved.node}
    outside = min(set(bench.cluster.node_names) - set(pool))
    bench.mark_move(moved, target)
    bench.mark_move(astray, outside)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert bench.pods.of(workflow.name, "t001")[-1].node == target
    assert len(bench.pods.of(workflow.name, "t002")) == 2
    assert nodes_used(bench, workflow) == set(pool)
    assert moves(bench, workflow, "t001") == 1
    check_nothing_left(bench, workflow)
