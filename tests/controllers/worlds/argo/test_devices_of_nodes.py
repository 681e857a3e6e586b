"""Whole devices of nodes: who has them, who is about to, and who gets none."""

import pytest

from controllers.core.actions import Migrate, Place
from controllers.core.devices import MOST_KINDS, MOST_OF_A_KIND, NO_DEVICES, Devices
from controllers.core.model import Node, NodeName, TrialId
from controllers.worlds.argo.reading.nodes import project_node
from controllers.worlds.argo.reading.pods import project_pod, requests_of
from controllers.worlds.argo.reading.workflows import project_workflow
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import Json, node, pod, steps, template, trial, workflow

GPU = "nvidia.com/gpu"
ONE, TWO = Devices.of({GPU: 1}), Devices.of({GPU: 2})
A, B = (TrialId(trial(name)) for name in "ab")
N1, N2 = NodeName("n1"), NodeName("n2")


def having(item: Json, count: str, kind: str = GPU) -> Json:
    item["status"]["allocatable"][kind] = count
    return item


def asking(item: Json, count: str = "1", kind: str = GPU) -> Json:
    resources = item["spec"]["containers"][1]["resources"]
    resources["requests"][kind] = count
    resources["limits"] = {kind: count}
    return item


def seen(bench: Bench, name: NodeName) -> Node:
    found = bench.world.node(name)
    assert found is not None
    return found


def test_a_node_shows_what_strangers_leave_of_its_devices_and_a_trial_what_it_holds(bench: Bench) -> None:
    stranger = asking(pod("s", on="n1"))
    stranger["metadata"]["labels"] = {}
    bench.put("nodes", having(node("n1"), "4"))
    for item in (stranger, asking(pod("a", on="n1"), "2")):
        bench.put("pods", item)
    bench.begin()
    assert seen(bench, N1).devices == Devices.of({GPU: 3})
    assert (bench.trial("a").devices, seen(bench, N1).devices_starting) == (TWO, NO_DEVICES)
    assert seen(bench, N2).devices == NO_DEVICES


def test_a_trial_that_has_no_pod_yet_shows_what_its_template_asks_for(bench: Bench) -> None:
    made = template("a")
    made["container"]["resources"]["limits"] = {GPU: "2"}
    bench.put("workflows", workflow(steps("a", "Pending"), templates=[made]))
    bench.begin()
    assert bench.trial("a").devices == TWO


def test_an_attempt_that_has_yet_to_run_is_told_to_hold_its_device(bench: Bench) -> None:
    bench.put("nodes", having(node("n1"), "2"))
    bench.put("pods", asking(pod("a", on="n1", state="waiting")))
    bench.put("pods", asking(pod("b", notes={"hera-specon.io/placed-on": "n1"})))
    bench.begin()
    assert bench.trial("a").nodes == ()
    assert (seen(bench, N1).devices, seen(bench, N1).devices_starting) == (TWO, TWO)


def test_a_place_without_a_free_device_is_refused_with_what_there_is_and_done_once_one_is_free(bench: Bench) -> None:
    bench.put("nodes", having(node("n1"), "1"))
    bench.put("pods", asking(pod("b", on="n1")))
    bench.put("pods", asking(pod("a", gated=True)))
    bench.begin()
    assert bench.world.apply(Place(A, (N1,))).detail == (
        f"n1 cannot give 1 {GPU}: it has 1 {GPU}, and 1 {GPU} are requested"
    )
    assert "no devices" in bench.world.apply(Place(A, (N2,))).detail
    bench.fake.store.drop("pods", "sweeps/sweep-x-b-0")
    bench.until(lambda: bench.world.apply(Place(A, (N1,))).done)


def test_a_device_is_given_once_though_the_first_place_does_not_show_yet(bench: Bench) -> None:
    bench.put("nodes", having(node("n1"), "1"))
    for name in "ab":
        bench.put("pods", asking(pod(name, gated=True)))
    bench.begin()
    assert bench.world.apply(Place(A, (N1,))).done
    assert GPU in bench.world.apply(Place(B, (N1,))).detail
    bench.settle()
    assert GPU in bench.world.apply(Place(B, (N1,))).detail
    assert seen(bench, N1).devices_starting == ONE


def test_a_move_takes_a_device_at_its_destination_from_the_start(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None)) | steps("b", "Pending", ("", None))))
    bench.put("nodes", having(node("n1"), "1"))
    bench.put("nodes", having(node("n2"), "1"))
    bench.put("pods", asking(pod("a", on="n1")))
    bench.put("pods", asking(pod("b", gated=True)))
    bench.begin()
    assert bench.world.apply(Migrate(A, (N2,))).done
    assert GPU in bench.world.apply(Place(B, (N2,))).detail


def test_a_node_kept_for_its_devices_takes_those_that_ask_for_one_and_nobody_else(bench: Bench) -> None:
    kept = [{"key": GPU, "effect": "NoSchedule"}]
    bench.put("nodes", having(node("n1", taints=kept), "1"))
    bench.put("nodes", having(node("n2", taints=[*kept, {"key": "other", "effect": "NoSchedule"}]), "1"))
    bench.put("nodes", node("n3", taints=kept))
    bench.put("pods", asking(pod("a", gated=True)))
    bench.put("pods", pod("b", gated=True))
    bench.begin()
    assert {one.name: (one.ready, set(one.only_for)) for one in bench.world.nodes()} == {
        "n1": (True, {GPU}),
        "n2": (False, {GPU}),
        "n3": (False, set()),
    }
    assert f"takes only pods that ask for {GPU}" in bench.world.apply(Place(B, (N1,))).detail
    assert bench.world.apply(Place(A, (N1,))).done


def test_devices_count_as_the_scheduler_counts_other_requests() -> None:
    item = asking(pod(on="n1"), "2")
    item["spec"]["initContainers"] = [{"name": "probe", "resources": {"requests": {GPU: "3", "a.b/c": "1"}}}]
    assert requests_of(item).devices == Devices.of({GPU: 3, "a.b/c": 1})


@pytest.mark.parametrize(
    ("written", "count"),
    [("2", 2), (2, 2), ("1k", 1000), ("1e300", MOST_OF_A_KIND), ("0", 0), ("-1", 0), ("many", 0), (None, 0), ([], 0)],
)
def test_whatever_a_node_says_of_its_devices_is_a_number_within_bounds(written: object, count: int) -> None:
    item = node("n1")
    item["status"]["allocatable"][GPU] = written
    found = project_node(item)
    assert found is not None
    assert found.devices == Devices.of({GPU: count})


def test_amounts_too_large_to_add_up_are_bounded() -> None:
    item = asking(pod(on="n1"), "1e308")
    item["spec"]["containers"].append({"name": "more", "resources": {"requests": {GPU: "1e308"}}})
    assert requests_of(item).devices == Devices.of({GPU: MOST_OF_A_KIND})


def test_only_so_many_kinds_are_read_and_none_that_are_no_devices() -> None:
    item = pod(on="n1")
    names = [f"example.com/d{number:03}" for number in range(MOST_KINDS + 9)]
    odd = ["hugepages-2Mi", "pods", "kubernetes.io/thing", "requests.nvidia.com", "/", "a/", "x" * 400 + ".com/y"]
    item["spec"]["containers"][1]["resources"]["requests"] |= dict.fromkeys((*names, *odd), "1")
    found = project_pod(item)
    assert found is not None
    assert found.requests.devices == Devices.of(dict.fromkeys(names[:MOST_KINDS], 1))


def test_a_number_that_only_argo_fills_in_is_not_plain_and_counts_as_none() -> None:
    made = template("a")
    made["container"]["resources"]["limits"] = {GPU: "{{inputs.parameters.gpus}}"}
    found = project_workflow(workflow(steps("a", "Pending"), templates=[made]))
    assert found is not None
    assert [step.asked.devices for step in found.steps.values()] == [NO_DEVICES]


@pytest.mark.parametrize(
    "kind", ["nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "amd.com/gpu", "gpu.intel.com/i915"]
)
def test_any_extended_resource_counts_as_it_is_advertised(bench: Bench, kind: str) -> None:
    bench.put("nodes", having(node("n1"), "7", kind))
    bench.put("pods", asking(pod("a", on="n1"), "2", kind))
    bench.begin()
    assert seen(bench, N1).devices == Devices.of({kind: 7})
    assert bench.trial("a").devices == Devices.of({kind: 2})
