"""Sweeps on nodes that an autoscaler starts and ends: Karpenter itself, and what cluster-autoscaler does to a node."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from controllers.worlds.argo.calls.api import PODS
from controllers.worlds.argo.calls.untrusted import at, epoch
from tests.cluster.autoscaler import POOL, Autoscaler, autoscaled
from tests.cluster.cluster import Cluster
from tests.cluster.fleet import StartedMachine
from tests.cluster.processes import wait_until
from tests.cluster.sweeps import elastic_descent_sweep, small_elastic_descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.pods_seen import SeenPod
from tests.cluster.sweeps.proofs import MOVED, check_whole, moves
from tests.cluster.test_three_nodes import pod

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

STEERED: Final = "ahead"
KIND: Final = {
    "name": "slice",
    "labels": {"karpenter.sh/nodepool": POOL},
    "cpu": "400m",
    "memory": "3Gi",
    "most": 3,
    "boots": 15,
}
FIRST_STEPS: Final = 5
TRAINS_WITHIN_S: Final = 240.0
ENDS_WITHIN_S: Final = 480.0
EMPTY_WITHIN_S: Final = 120.0
TAINT: Final = "ToBeDeletedByClusterAutoscaler"


@pytest.fixture(scope="module")
def karpenter(own_cluster: Cluster) -> Iterator[Autoscaler]:
    """Karpenter, which has started no node yet."""
    with autoscaled(own_cluster) as made:
        yield made


@pytest.fixture
def autoscaler(karpenter: Autoscaler) -> Iterator[Autoscaler]:
    """Karpenter with its first settings, and no nodes."""
    karpenter.set_pool()
    karpenter.fleet.refusals, karpenter.fleet.boot_s = 0, 0.0
    wait_until(karpenter.is_empty, "the nodes of the test before are gone", EMPTY_WITHIN_S, interval=0.5)
    yield karpenter
    print(karpenter.log())  # noqa: T201 - shown where the test failed


# The first, while the nodes are not Karpenter's yet.
def test_trials_leave_a_node_as_cluster_autoscaler_removes_it(bench: Bench, own_cluster: Cluster) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(elastic_descent_sweep, steps=240)
    bench.wait_all_training(workflow)
    node = bench.running(workflow)["t001"].node
    own_cluster.kubectl("taint", "node", node, f"{TAINT}={time.time():.0f}:NoSchedule")
    _evict_all(bench, node)
    try:
        bench.wait(lambda: _has_gone_on(bench, workflow, "t001", node), "t001 goes on elsewhere", TRAINS_WITHIN_S)
    finally:
        own_cluster.lose_node(node)
        own_cluster.kubectl("delete", "node", node)
        own_cluster.renew_node(node)
        bench.wait(own_cluster.are_nodes_ready, "the node is back", 90)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert not _failures(bench, workflow)


def test_a_sweep_gets_nodes_from_karpenter_and_leaves_none_behind(bench: Bench, autoscaler: Autoscaler) -> None:
    _check_from_zero_to_zero(bench, autoscaler, None, "under the default scheduler")


def test_ahead_gets_nodes_from_karpenter_of_kinds_that_it_was_told(
    bench: Bench, autoscaler: Autoscaler, tmp_path: Path
) -> None:
    _start_controller_that_was_told(bench, tmp_path)
    _check_from_zero_to_zero(bench, autoscaler, STEERED, "under ahead, which was told of the kind")


def test_ahead_gets_nodes_from_karpenter_though_machines_are_refused_and_slow(
    bench: Bench, autoscaler: Autoscaler, tmp_path: Path
) -> None:
    autoscaler.fleet.refusals, autoscaler.fleet.boot_s = 2, 10.0
    _start_controller_that_was_told(bench, tmp_path)
    _check_from_zero_to_zero(bench, autoscaler, STEERED, "with machines that are refused twice and boot 10 s longer")
    assert autoscaler.fleet.refusals == 0


def test_trials_leave_a_node_that_karpenter_lets_expire(bench: Bench, autoscaler: Autoscaler) -> None:
    autoscaler.set_pool(expire="60s")
    workflow, machines = _training(bench, autoscaler, steps=480)
    _check_left_in_time(bench, workflow, machines)


def test_trials_leave_a_node_that_karpenter_replaces_since_it_has_drifted(bench: Bench, autoscaler: Autoscaler) -> None:
    workflow, machines = _training(bench, autoscaler, steps=480)
    autoscaler.set_image(f"{time.time():.0f}")
    _check_left_in_time(bench, workflow, machines)


def test_ahead_gets_nodes_from_karpenter_though_it_knows_of_none(bench: Bench, autoscaler: Autoscaler) -> None:
    bench.controller(STEERED).start().wait_ready()
    _check_from_zero_to_zero(bench, autoscaler, STEERED, "under ahead, which learns the kind")


def test_trials_leave_a_node_that_karpenter_can_do_without(bench: Bench, autoscaler: Autoscaler) -> None:
    fillers = [pod(f"filler-{number}", "sleep 1000", "210m") for number in range(2)]
    bench.kubectl.create(fillers)
    workflow, machines = _training(bench, autoscaler, steps=600, sweep=small_elastic_descent_sweep)
    bench.kubectl("delete", "pods", *(filler["metadata"]["name"] for filler in fillers), "--wait=false")
    autoscaler.set_pool(consolidate="WhenEmptyOrUnderutilized")
    _check_left_in_time(bench, workflow, machines)


def _start_controller_that_was_told(bench: Bench, folder: Path) -> None:
    """Start a controller that knows of the nodes that Karpenter can bring."""
    kinds = folder / "kinds.yaml"
    kinds.write_text(json.dumps({"kinds": [KIND]}))
    bench.controller(STEERED, "--node-kinds", str(kinds)).start().wait_ready()


def _check_from_zero_to_zero(bench: Bench, autoscaler: Autoscaler, policy: str | None, how: str) -> None:
    """Run a sweep to its end, check that it is whole and that all its nodes went, and show what it took."""
    before = len(autoscaler.fleet.machines)
    workflow = bench.submit(elastic_descent_sweep, policy=policy)
    bench.wait_for_end(workflow, ENDS_WITHIN_S)
    check_whole(bench, workflow)
    bench.wait(autoscaler.is_empty, "no node is left", EMPTY_WITHIN_S)
    machines = autoscaler.fleet.machines[before:]
    assert len({machine.node for machine in machines}) > 1
    assert not _failures(bench, workflow)
    begun = epoch(at(bench.workflow(workflow), "status", "startedAt")) or 0.0
    autoscaler.cluster.tell(
        f"{how}: {_finished(bench, workflow) - begun:.0f} s, {autoscaler.fleet.node_seconds(before):.0f} node seconds "
        f"on {len(machines)} machines, {moves(bench, workflow)} moves"
    )


def _training(
    bench: Bench, autoscaler: Autoscaler, steps: int, sweep: ModuleType = elastic_descent_sweep
) -> tuple[Workflow, list[StartedMachine]]:
    """Return a sweep under a controller whose trials all train, and the machines that are there."""
    bench.controller(STEERED).start().wait_ready()
    workflow = bench.submit(sweep, policy=STEERED, steps=steps)

    def train() -> bool:
        return all(bench.steps_done(workflow, trial) >= FIRST_STEPS for trial in workflow.trials)

    bench.wait(train, "all trials train", TRAINS_WITHIN_S)
    return workflow, autoscaler.fleet.here()


def _check_left_in_time(bench: Bench, workflow: Workflow, machines: list[StartedMachine]) -> None:
    """Check that machines went during the sweep, and that each trial had left them by then without a failure."""
    bench.wait_for_end(workflow, ENDS_WITHIN_S)
    finished = _finished(bench, workflow)
    check_whole(bench, workflow)
    gone = {machine.node: machine.ended_at for machine in machines if (machine.ended_at or finished) < finished}
    assert gone, f"none of {machines} went before the sweep had ended\n{bench.story()}"
    left = [pod for pod in bench.pods.all(workflow.name) if pod.node in gone and pod.exit_code == MOVED]
    assert left, f"no trial left {gone}\n{bench.story()}"
    assert all(pod.moments["ended"] <= (gone[pod.node] or 0.0) for pod in left), "a trial was cut off"
    assert not _failures(bench, workflow)


def _failures(bench: Bench, workflow: Workflow) -> list[SeenPod]:
    """Attempts that did not leave by themselves: each costs the trial a retry, and its steps since a checkpoint."""
    pods = [pod for pod in bench.pods.all(workflow.name) if "started" in pod.moments]
    return [pod for pod in pods if pod.exit_code not in {0, MOVED}]


def _evict_all(bench: Bench, node: str) -> None:
    for one in bench.pods.everywhere():
        if one.node == node and one.running:
            path = f"{PODS.path(bench.namespace, one.name)}/eviction"
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": one.name}}
            bench.kubectl("create", "--raw", path, "--filename", "-", text_input=json.dumps(eviction))


def _has_gone_on(bench: Bench, workflow: Workflow, trial: str, left: str) -> bool:
    now = bench.running(workflow).get(trial)
    return now is not None and now.node != left


def _finished(bench: Bench, workflow: Workflow) -> float:
    return epoch(at(bench.workflow(workflow), "status", "finishedAt")) or 0.0
