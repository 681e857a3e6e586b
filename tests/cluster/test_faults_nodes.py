"""A node lost with all on it, and a kubelet lost while its containers run on."""

from collections.abc import Iterator

import pytest

from tests.cluster import node_cgroups
from tests.cluster.cluster import Cluster
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.pods_seen import SeenPod
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.faults, pytest.mark.timeout(900)]

LOST = "t001"
GIVEN_UP_WITHIN_S = 150.0


@pytest.fixture
def bench(bench: Bench, own_cluster: Cluster) -> Iterator[Bench]:
    """The bench of every test, with all nodes back afterwards, whatever went wrong."""
    yield bench
    for node in own_cluster.nodes:
        machine = own_cluster.machine(node.name)
        if not machine.is_running:
            own_cluster.return_node(node.name)
        elif not machine.is_component_running("kubelet"):
            own_cluster.start_kubelet(node.name)
    bench.wait(own_cluster.are_nodes_ready, "all nodes are back", 90)


def test_the_trials_of_a_lost_node_go_on_elsewhere_from_their_newest_checkpoint(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(steps=240)
    bench.wait_all_training(workflow, steps=20)
    pod = bench.running(workflow)[LOST]
    bench.cluster.lose_node(pod.node)
    saved = bench.newest_checkpoint(workflow, LOST).name
    successor = _wait_for_successor(bench, workflow, pod)
    assert successor.node != pod.node
    bench.cluster.return_node(pod.node)
    bench.wait_for_end(workflow)
    bench.wait(bench.cluster.are_nodes_ready, "the node is back", 90)
    check_whole(bench, workflow)
    assert bench.resumed_at(successor) == int(saved.removeprefix("step-")) > 0
    check_nothing_left(bench, workflow)


def test_two_attempts_alive_at_once_do_not_corrupt_one_run(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(steps=600)
    bench.wait_all_training(workflow, steps=20)
    pod = bench.running(workflow)[LOST]
    bench.cluster.kill_kubelet(pod.node)
    done = bench.steps_done(workflow, LOST)
    successor = _wait_for_successor(bench, workflow, pod)
    assert _lives(pod), "the attempt before should still run, since only its kubelet was lost"
    assert bench.steps_done(workflow, LOST) > done + 100, "it went on training"
    bench.wait(lambda: not _lives(pod), "the older attempt has noticed that it was replaced", 60)
    assert successor.node != pod.node
    bench.cluster.start_kubelet(pod.node)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    check_nothing_left(bench, workflow)


def _wait_for_successor(bench: Bench, workflow: Workflow, pod: SeenPod) -> SeenPod:
    """Wait until a later attempt of the pod's trial runs, and return it."""

    def started() -> bool:
        newest = bench.running(workflow).get(pod.trial)
        return newest is not None and newest.uid != pod.uid

    bench.wait(started, f"{pod.trial} goes on in another pod", GIVEN_UP_WITHIN_S)
    return bench.running(workflow)[pod.trial]


def _lives(pod: SeenPod) -> bool:
    """Whether the pod's training process is alive, as the kernel knows it."""
    folder = node_cgroups.pod_folder(pod.uid) / pod.container_id
    return folder.exists() and bool((folder / "cgroup.procs").read_text().split())
