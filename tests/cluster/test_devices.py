"""Whole devices on a cluster: gates hold trials back until one is free, and none is given twice."""

from collections.abc import Iterator
from itertools import accumulate

import pytest

from tests.cluster.devices import advertise
from tests.cluster.sweeps import device_descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.device_descent_sweep import DEVICE
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

DEVICES = 2


@pytest.fixture
def equipped_node(bench: Bench) -> Iterator[str]:
    """The one node that has devices."""
    node = max(bench.cluster.node_names)
    advertise(bench.api, node, DEVICE, DEVICES)
    yield node
    advertise(bench.api, node, DEVICE, None)


def most_at_once(bench: Bench, workflow: Workflow, begins: str) -> int:
    """Return how many trials were at most, at a time, between the moment ``begins`` and their end."""
    pods = [bench.pods.of(workflow.name, trial)[0] for trial in workflow.trials]
    changes = sorted([(pod.moments["ended"], -1) for pod in pods] + [(pod.moments[begins], 1) for pod in pods])
    return max(accumulate(change for _, change in changes))


def test_trials_with_a_device_each_are_let_go_as_devices_become_free(bench: Bench, equipped_node: str) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(device_descent_sweep, policy="ahead", steps=60)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    attempts = [bench.pods.of(workflow.name, trial) for trial in workflow.trials]
    assert [len(pods) for pods in attempts] == [1] * len(attempts)
    assert {pod.node for pods in attempts for pod in pods} == {equipped_node}
    assert all(pod.moments["ungated"] > pod.moments["created"] for pods in attempts for pod in pods)
    assert most_at_once(bench, workflow, "started") == DEVICES
    assert most_at_once(bench, workflow, "ungated") == DEVICES, "a gate was opened for a device that another held"
    check_nothing_left(bench, workflow)
