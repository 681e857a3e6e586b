"""Devices behind ResourceClaims, by a real driver: gates, order, moves, a gang, and claims that a pause frees.

The container runtime of the test cluster puts no device into a container (containerd 1.6 knows no CDI). Everything
else is real: what the driver offers, claims, their allocation by kube-scheduler, and their preparation by kubelets.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from controllers.worlds.argo.calls.api import PODS, RESOURCE_CLAIMS
from controllers.worlds.argo.calls.untrusted import at, mappings, text
from tests.cluster.dra_install import devices_offered, make_template, serves_claims
from tests.cluster.sweeps import claiming_descent_sweep, claiming_gang_sweep
from tests.cluster.sweeps.bench import STARTS_WITHIN_S, Bench
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole, moves, resizes
from tests.cluster.test_devices import most_at_once

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
DEVICES: Final = 2


@pytest.fixture
def two_nodes(bench: Bench) -> tuple[str, str]:
    """Two nodes that get devices, which a template of the namespace claims."""
    if not serves_claims(bench.api):
        pytest.skip("resource claims need Kubernetes 1.34 or newer")
    make_template(bench.kubectl)
    first, second = sorted(bench.cluster.node_names)[-2:]
    return first, second


@pytest.fixture
def offering(bench: Bench, two_nodes: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """These nodes, once they have two devices each."""
    with devices_offered(bench.cluster, bench.api, dict.fromkeys(two_nodes, DEVICES)):
        yield two_nodes


def held(bench: Bench) -> dict[str, list[str]]:
    """Return the pools and devices that the claims of the namespace hold, by the pods that they are reserved for."""
    claims = mappings(bench.api.get(RESOURCE_CLAIMS.path(bench.namespace)), "items")
    return {
        text(user, "name"): [f"{text(one, 'pool')}/{text(one, 'device')}" for one in results]
        for claim in claims
        if (results := list(mappings(claim, "status", "allocation", "devices", "results")))
        for user in mappings(claim, "status", "reservedFor")
    }


def gated(bench: Bench) -> set[str]:
    """Return the trials of the namespace that have a pod which waits at its gate."""
    waiting = [one for one in bench.api.get(PODS.path(bench.namespace))["items"] if at(one, "spec", "schedulingGates")]
    return {text(one, "metadata", "labels", "hera-specon.io/trial") for one in waiting}


def test_trials_with_a_claim_each_are_let_go_as_devices_become_free_and_keep_their_shares(
    bench: Bench, offering: tuple[str, str]
) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(claiming_descent_sweep, policy="ahead", steps=60)
    bench.wait(lambda: len(held(bench)) == 2 * DEVICES, "all devices are held", STARTS_WITHIN_S)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    attempts = [bench.pods.of(workflow.name, trial) for trial in workflow.trials]
    assert [len(pods) for pods in attempts] == [1] * len(attempts)
    assert {pod.node for pods in attempts for pod in pods} == set(offering)
    assert all(pod.moments["ungated"] > pod.moments["created"] for pods in attempts for pod in pods)
    assert most_at_once(bench, workflow, "started") == 2 * DEVICES
    assert most_at_once(bench, workflow, "ungated") == 2 * DEVICES, "a gate was opened for a device that another held"
    assert resizes(bench, workflow) == 0
    assert "changes no share of a pod with resource claims" in bench.kubectl("get", "events", "--output", "wide")
    bench.wait(lambda: not held(bench), "all devices are free", 60)
    check_nothing_left(bench, workflow)


def test_a_trial_with_a_claim_moves_to_a_device_of_another_node(bench: Bench, two_nodes: tuple[str, str]) -> None:
    first, second = two_nodes
    with devices_offered(bench.cluster, bench.api, {first: 3, second: 3}):
        bench.controller().start().wait_ready()
        workflow = bench.submit(claiming_descent_sweep, steps=150)
        bench.wait_all_training(workflow)
        bench.wait(lambda: bench.adopted(workflow), "the controller steers the workflow", 60)
        running = bench.running(workflow)
        full, target = sorted(two_nodes, key=lambda name: -sum(pod.node == name for pod in running.values()))
        trial = next(name for name, pod in running.items() if pod.node == full)
        bench.mark_move(running[trial], target)
        bench.wait(lambda: moves(bench, workflow, trial) == 1, f"{trial} has moved", 120)
        newest = bench.pods.of(workflow.name, trial)[-1]
        assert newest.node == target
        assert [one.partition("/")[0] for one in held(bench)[newest.name]] == [target]
        assert running[trial].name not in held(bench)
        bench.wait_for_end(workflow)
        check_whole(bench, workflow)
        check_nothing_left(bench, workflow)


@pytest.mark.usefixtures("offering")
def test_a_paused_trial_frees_its_claim_and_claims_again_where_it_goes_on(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(claiming_descent_sweep, policy="ahead", steps=150)
    trial = workflow.trials[2]
    bench.wait(lambda: bench.steps_done(workflow, trial) >= 5, f"{trial} trains", STARTS_WITHIN_S)
    pod = bench.running(workflow)[trial]
    assert pod.name in held(bench)
    bench.specon("pause", workflow.name, trial)
    bench.wait(lambda: pod.name not in held(bench), "its device is free", 60)
    bench.wait(lambda: len(held(bench)) == 2 * DEVICES, "a trial that waited holds it", 60)
    # The step's next attempt comes into being only once Argo has seen the end of the one before.
    bench.wait(lambda: gated(bench) == {trial}, f"the next attempt of {trial}, and no other, waits at its gate", 60)
    bench.specon("resume", workflow.name, "--trial", trial)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)


@pytest.mark.usefixtures("offering")
def test_each_worker_of_a_gang_gets_a_device_of_its_own(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(claiming_gang_sweep, policy="ahead", steps=60)
    workers = claiming_gang_sweep.WORKERS
    bench.wait(lambda: len(held(bench)) == workers, "each worker holds a device", STARTS_WITHIN_S)
    found = [one for devices in held(bench).values() for one in devices]
    assert len(set(found)) == workers
    assert len({one.partition("/")[0] for one in found}) == 1, "they are on one node, which has two devices"
    bench.wait_for_end(workflow)
    assert bench.phase(workflow) == "Succeeded", bench.story()
