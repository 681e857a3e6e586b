"""Devices behind resource claims: who has them, who is about to, who gets none, and what is left to the scheduler."""

import pytest

from controllers.core.actions import Migrate, Place, Resize, Suspend
from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import Node, NodeName, Phase, TrialId
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.fake_api import CLAIMED, Call
from tests.controllers.worlds.argo.objects import Json, node, over, pod, steps, trial, workflow
from tests.controllers.worlds.argo.objects_of_claims import (
    CLASS,
    KIND,
    claim,
    claiming,
    device,
    device_class,
    device_slice,
    request,
)

ONE, TWO, THREE = (Devices.of({KIND: count}) for count in (1, 2, 3))
A, B = (TrialId(trial(name)) for name in "ab")
N1, N2 = NodeName("n1"), NodeName("n2")
NOT_COUNTED = "DevicesNotCounted"


def offer(bench: Bench, *nodes: str, devices: int = 2) -> None:
    bench.put("deviceclasses", device_class())
    for name in nodes:
        bench.put("resourceslices", device_slice(name, *(device(f"gpu-{index}") for index in range(devices))))


def put_claiming(bench: Bench, item: Json, *requests: Json, given: tuple[str, ...] = (), on: str = "") -> Json:
    """Put a pod of a trial, and the claim that Kubernetes made for it."""
    name = f"claim-of-{item['metadata']['name']}"
    made = bench.put("pods", claiming(item, name))
    bench.put("resourceclaims", claim(name, made, *requests, given=given, on=on))
    return made


def seen(bench: Bench, name: NodeName) -> Node:
    found = bench.world.node(name)
    assert found is not None
    return found


def begin(bench: Bench) -> None:
    """Start a world, and wait until it has asked for all that tells of devices."""

    def asked() -> bool:
        watched = (bench.fake.of("GET", f"{kind}?watch") for kind in CLAIMED)
        refused = (bench.fake.fault(Call("GET", kind, None)) for kind in CLAIMED)
        return all(one or other for one, other in zip(watched, refused, strict=True))

    bench.begin()
    bench.until(asked)
    bench.settle()


def test_a_node_shows_what_strangers_leave_of_its_devices_and_a_trial_what_it_claims(bench: Bench) -> None:
    offer(bench, "n1", devices=4)
    bench.put("resourceclaims", claim("of-a-stranger", None, given=("gpu-3",), on="n1"))
    put_claiming(bench, pod("a", on="n1"), request(2), given=("gpu-0", "gpu-1"), on="n1")
    begin(bench)
    assert (bench.trial("a").devices, seen(bench, N1).devices) == (TWO, THREE)
    assert seen(bench, N2).devices == NO_DEVICES


def test_a_claim_that_is_freed_leaves_its_device_to_others(bench: Bench) -> None:
    offer(bench, "n1")
    held = bench.put("resourceclaims", claim("of-a-stranger", None, given=("gpu-0",), on="n1"))
    begin(bench)
    assert seen(bench, N1).devices == ONE
    bench.put("resourceclaims", {**held, "status": {}})
    bench.until(lambda: seen(bench, N1).devices == TWO)


def test_a_place_without_a_free_device_is_refused_with_what_there_is_and_done_once_one_is_free(bench: Bench) -> None:
    offer(bench, "n1", devices=1)
    put_claiming(bench, pod("b", on="n1"), given=("gpu-0",), on="n1")
    put_claiming(bench, pod("a", gated=True))
    begin(bench)
    assert bench.world.apply(Place(A, (N1,))).detail == (
        f"n1 cannot give 1 {KIND}: it has 1 {KIND}, and 1 {KIND} are requested"
    )
    assert "no devices" in bench.world.apply(Place(A, (N2,))).detail
    bench.fake.store.drop("resourceclaims", "sweeps/claim-of-sweep-x-b-0")
    bench.fake.store.drop("pods", "sweeps/sweep-x-b-0")
    bench.until(lambda: bench.world.apply(Place(A, (N1,))).done)


def test_a_device_is_given_once_though_the_first_place_does_not_show_yet(bench: Bench) -> None:
    offer(bench, "n1", devices=1)
    for name in "ab":
        put_claiming(bench, pod(name, gated=True))
    begin(bench)
    assert bench.world.apply(Place(A, (N1,))).done
    bench.until(lambda: KIND in bench.world.apply(Place(B, (N1,))).detail)
    bench.settle()
    assert KIND in bench.world.apply(Place(B, (N1,))).detail
    assert seen(bench, N1).devices_starting == ONE


def test_a_trial_waits_until_its_claims_are_made(bench: Bench) -> None:
    offer(bench, "n1")
    made = bench.put("pods", claiming(pod("a", gated=True)))
    begin(bench)
    assert not bench.trial("a").gated
    assert "has not made all of its resource claims" in bench.world.apply(Place(A, (N1,))).detail
    bench.put("resourceclaims", claim("late", made))
    bench.put("pods", claiming(made, "late"))
    bench.until(lambda: bench.trial("a").gated)
    assert bench.world.apply(Place(A, (N1,))).done


def test_a_suspended_trial_frees_its_device_and_asks_for_one_again(bench: Bench) -> None:
    offer(bench, "n1", devices=1)
    put_claiming(bench, pod("a", on="n1"), given=("gpu-0",), on="n1")
    put_claiming(bench, pod("b", gated=True))
    begin(bench)
    assert bench.world.apply(Suspend(A)).done
    bench.settle()
    # As Kubernetes does: the pod is over, and its claim is deleted. Argo makes the next pod, which waits.
    gone = bench.pod("a")
    assert gone is not None
    gone["status"] |= over(75, "a")["status"]
    gone["spec"]["nodeName"] = "n1"
    bench.put("pods", gone)
    bench.fake.store.drop("resourceclaims", "sweeps/claim-of-sweep-x-a-0")
    bench.until(lambda: not bench.trial("a").nodes)
    bench.settle()
    assert bench.trial("a").devices == ONE, "what it will ask for again was forgotten with its claim"
    put_claiming(bench, pod("a", 1, gated=True))
    bench.until(lambda: bench.trial("a").phase is Phase.SUSPENDED)
    bench.settle()
    assert bench.world.apply(Place(B, (N1,))).done
    bench.until(lambda: KIND in bench.world.apply(Place(A, (N1,))).detail)


def test_a_move_takes_a_device_at_its_destination_from_the_start(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None)) | steps("b", "Pending", ("", None))))
    offer(bench, "n1", "n2", devices=1)
    put_claiming(bench, pod("a", on="n1"), given=("gpu-0",), on="n1")
    put_claiming(bench, pod("b", gated=True))
    begin(bench)
    assert bench.world.apply(Migrate(A, (N2,))).done
    bench.until(lambda: KIND in bench.world.apply(Place(B, (N2,))).detail)


def test_a_device_that_one_class_took_is_no_room_for_another_class_that_selects_it(bench: Bench) -> None:
    offer(bench, "n1", devices=2)
    bench.put("deviceclasses", device_class("any", "device.attributes['gpu.example.com'].type == 'gpu'"))
    put_claiming(bench, pod("a", on="n1"), given=("gpu-0",), on="n1")
    begin(bench)
    other = KIND.replace(CLASS, "any")
    assert seen(bench, N1).devices == Devices.of({KIND: 2, other: 1})


@pytest.mark.parametrize(
    ("kubelet", "why"),
    [("v1.36.2", "changes no share of a pod with resource claims"), ("v1.37.0", "")],
)
def test_the_share_of_a_trial_with_claims_stays_before_1_37_and_that_is_told_once(
    bench: Bench, kubelet: str, why: str
) -> None:
    offer(bench, "n1")
    item = node("n1")
    item["status"]["nodeInfo"] = {"kubeletVersion": kubelet}
    bench.put("nodes", item)
    put_claiming(bench, pod("a", on="n1"), given=("gpu-0",), on="n1")
    begin(bench)
    bench.settle()
    outcome = bench.world.apply(Resize(A, 0.2))
    assert outcome.done is not bool(why)
    assert why in outcome.detail
    bench.settle()
    assert len(bench.fake.of("PATCH", "/resize")) == (0 if why else 1)
    assert bench.told.reasons.count("ShareKept") == (1 if why else 0)


@pytest.mark.parametrize(
    ("put", "why"),
    [
        ({"of": "missing"}, "there is no DeviceClass missing"),
        ({"selectors": [{"cel": {"expression": "true"}}]}, "selectors of its own"),
        ({"allocationMode": "All"}, "the allocation mode 'All'"),
        ({"adminAccess": True}, "access for administration"),
        ({"of": "parts"}, "DeviceClass parts has devices that are shared"),
        ({"of": "odd"}, "the selectors of DeviceClass odd say more than is read"),
    ],
)
def test_a_trial_whose_devices_are_not_counted_is_left_to_the_scheduler_and_its_pod_says_why(
    bench: Bench, put: Json, why: str
) -> None:
    offer(bench, "n1")
    bench.put("deviceclasses", device_class("parts", "device.driver == 'parts.example.com'"))
    bench.put("deviceclasses", device_class("odd", "device.attributes['x'].exists(y, y > 1)"))
    part = device("part-0", consumesCounters=[{"counterSet": "one"}])
    bench.put("resourceslices", device_slice("n2", part, driver="parts.example.com"))
    put_claiming(bench, pod("a", gated=True), request(**put))
    begin(bench)
    # A pod and its claim come by watches of their own: until both are there, the place is refused.
    bench.until(lambda: bench.world.apply(Place(A, (N2,))).done)
    bench.settle()
    opened = bench.pod("a")
    assert opened is not None
    assert not opened["spec"].get("schedulingGates")
    assert "kubernetes.io/hostname" not in opened["spec"].get("nodeSelector", {})
    (note,) = (note for reason, note in zip(bench.told.reasons, bench.told.notes, strict=True) if reason == NOT_COUNTED)
    assert why in note


def test_a_running_trial_whose_devices_are_not_counted_is_not_moved(bench: Bench) -> None:
    offer(bench, "n1")
    put_claiming(bench, pod("a", on="n1"), request(of="missing"), given=("gpu-0",), on="n1")
    begin(bench)
    assert "no node can be chosen for it: there is no DeviceClass" in bench.world.apply(Migrate(A, (N2,))).detail
    assert seen(bench, N1).devices == ONE, "the device that it holds counts all the same"


def test_where_a_cluster_serves_no_claims_all_else_goes_on_and_such_a_trial_is_left_to_the_scheduler(
    bench: Bench,
) -> None:
    gone = ("resourceslices", "deviceclasses", "resourceclaims")
    bench.fake.fault = lambda call: (404, "not found") if any(part in call.path for part in gone) else None
    bench.put("pods", claiming(pod("a", gated=True), "unseen"))
    bench.put("pods", pod("b", on="n1"))
    begin(bench)
    assert bench.world.apply(Resize(B, 0.2)).done
    bench.until(lambda: bench.world.apply(Place(A, (N2,))).done)
    bench.settle()
    opened = bench.pod("a")
    assert opened is not None
    assert not opened["spec"].get("nodeSelector")
    assert len(bench.fake.of("GET", "resourceslices")) == 1, "what is not served is asked for again and again"


def test_where_claims_may_not_be_read_such_a_trial_is_left_to_the_scheduler(bench: Bench) -> None:
    bench.fake.fault = lambda call: (403, "forbidden") if "resourceclaims" in call.path else None
    offer(bench, "n1")
    bench.put("pods", claiming(pod("a", gated=True), "unseen"))
    begin(bench)
    bench.until(lambda: bench.world.apply(Place(A, (N2,))).done)
    bench.settle()
    assert NOT_COUNTED in bench.told.reasons
    assert seen(bench, N1).devices == NO_DEVICES
