"""What is read of ResourceSlices, DeviceClasses and ResourceClaims, whatever they hold."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.devices import MOST_KINDS, Devices, device_class_kind
from controllers.worlds.argo.meaning.claimed_devices import ClaimedDevices, Offers
from controllers.worlds.argo.reading.device_selectors import comparisons_in
from controllers.worlds.argo.reading.nodes import project_node
from controllers.worlds.argo.reading.pods import project_other, project_pod
from controllers.worlds.argo.reading.resource_claims import NO_CLAIMS, claims_of, project_claim
from controllers.worlds.argo.reading.resource_slices import MOST_DEVICES, project_class, project_slice
from tests.controllers.worlds.argo.objects import Json, node, pod
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

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


def offers(*slices: Json, classes: tuple[Json, ...] = (device_class(),)) -> Offers:
    read = filter(None, map(project_slice, slices))
    return Offers(read, filter(None, map(project_class, classes)))


def counted(found: Offers, name: str = "n1") -> Devices:
    record = project_node(node(name))
    assert record is not None
    return found.with_devices(record).devices


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("device.driver == 'gpu.example.com'", 1),
        ('device.driver == "other"', 0),
        ("device.driver != 'other'", 1),
        ("device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].type == 'gpu'", 1),
        ("device.attributes['gpu.example.com']['index'] == 3", 1),
        ("device.attributes['gpu.example.com'].index != 3", 0),
        ("device.attributes['gpu.example.com'].ecc == true\n&&\ndevice.driver == 'gpu.example.com'", 1),
        ("device.attributes['gpu.example.com'].missing != 'x'", 0),
        ("device.attributes['gpu.example.com'].index == '3'", 0),
        ("device.attributes['other.example.com'].zone == 'a'", 1),
    ],
)
def test_a_class_of_plain_comparisons_selects_as_kubernetes_does(expression: str, count: int) -> None:
    attributes = {"type": {"string": "gpu"}, "index": {"int": 3}, "ecc": {"bool": True}}
    one = device("gpu-0", attributes={**attributes, "other.example.com/zone": {"string": "a"}})
    found = offers(device_slice("n1", one), classes=(device_class(CLASS, expression),))
    assert counted(found).count(KIND) == count
    assert not found.why_uncounted(CLASS)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "true",
        "!(device.driver == 'a')",
        "device.driver == 'a' || device.driver == 'b'",
        "device.driver == 'a' && (device.driver == 'a')",
        "device.driver == 'a&&b'",
        "device.driver == 'a\\'b'",
        "device.capacity['x'].memory.compareTo(quantity('40Gi')) >= 0",
        "device.attributes['x'].version.isGreaterThan(semver('1.0.0'))",
        "device.driver.startsWith('a')",
        "device.driver == 'a' && " * 40 + "device.driver == 'a'",
        "device.driver == '" + "a" * 9000 + "'",
        "device.attributes['x'].n == 99999999999999999999",
    ],
)
def test_what_says_more_than_plain_comparisons_is_named_and_its_devices_are_not_counted(expression: str) -> None:
    assert comparisons_in(expression) is None
    found = offers(device_slice("n1", device("gpu-0")), classes=(device_class(CLASS, expression),))
    assert not counted(found)
    assert f"the selectors of DeviceClass {CLASS} say more" in found.why_uncounted(CLASS)


def test_all_selectors_of_a_class_must_hold_and_one_without_any_takes_all_devices() -> None:
    two = device_class("two", "device.driver == 'gpu.example.com'", "device.driver == 'other'")
    every = {"metadata": {"name": "every"}, "spec": {}}
    found = counted(offers(device_slice("n1", device("gpu-0")), classes=(two, every)))
    assert found == Devices.of({device_class_kind("every"): 1})


def test_only_the_newest_generation_of_a_pool_counts_and_only_once_it_is_whole() -> None:
    old = device_slice("n1", device("a"), device("b"), generation=1)
    first = device_slice("n1", device("a"), generation=2, parts=2)
    second = device_slice("n1", device("c"), generation=2, parts=2)
    assert counted(offers(old)).count(KIND) == 2
    assert not counted(offers(old, first))
    assert counted(offers(old, first, second)).count(KIND) == 2


def test_a_device_with_a_taint_is_no_room_and_its_class_is_counted_all_the_same() -> None:
    tainted = device("bad", taints=[{"key": "broken", "effect": "NoSchedule"}])
    found = offers(device_slice("n1", tainted, device("good")))
    assert (counted(found).count(KIND), found.why_uncounted(CLASS)) == (1, "")


@pytest.mark.parametrize(
    "odd",
    [
        {"consumesCounters": [{"counterSet": "a"}]},
        {"allowMultipleAllocations": True},
        {"nodeName": "n2"},
        {"nodeSelector": {"nodeSelectorTerms": []}},
        {"allNodes": True},
    ],
)
def test_a_class_with_a_device_that_is_not_whole_or_not_one_nodes_is_not_counted(odd: Json) -> None:
    found = offers(device_slice("n1", device("a"), device("b", **odd)))
    assert not counted(found)
    assert "shared, parts of others, or of several nodes" in found.why_uncounted(CLASS)


def test_a_class_with_devices_of_several_nodes_is_not_counted() -> None:
    everywhere = device_slice("n1", device("a"))
    del everywhere["spec"]["nodeName"]
    assert "of several nodes" in offers(everywhere).why_uncounted(CLASS)


def test_only_so_many_classes_are_counted_and_the_others_are_named() -> None:
    classes = tuple(device_class(f"c{number:03}") for number in range(MOST_KINDS + 1))
    found = offers(device_slice("n1", device("a")), classes=classes)
    assert len(counted(found).counts) == MOST_KINDS
    assert "more than" in found.why_uncounted(f"c{MOST_KINDS:03}")


def test_a_claim_asks_for_devices_of_classes_and_holds_what_it_was_given_but_for_administration() -> None:
    item = claim("c", pod("a", uid="u"), request(2), request(1, of="other"), given=("g0", "g1"), on="n1")
    item["status"]["allocation"]["devices"]["results"][1]["adminAccess"] = True
    found = project_claim(item)
    assert (found.owner, dict(found.classes), found.why_unread) == ("u", {CLASS: 2, "other": 1}, "")
    assert [one.device for one in found.given] == ["g0"]


@pytest.mark.parametrize(
    ("devices", "why"),
    [
        ({}, "no list of requests"),
        ({"requests": [{"name": "a", "firstAvailable": [{}]}]}, "a choice among devices"),
        ({"requests": [request(capacity={"requests": {"memory": "1Gi"}})]}, "a part of a device"),
        ({"requests": [request(0)]}, "0 devices of class"),
        ({"requests": [{"exactly": {"deviceClassName": CLASS, "count": "2"}}]}, "2 devices of class"),
        ({"requests": [request(of="x" * 300)]}, "devices of class"),
        ({"requests": [request(2)], "constraints": [{"matchAttribute": "a/b"}]}, "alike or unlike"),
        ({"requests": [request()] * 33}, "no list of requests"),
    ],
)
def test_what_else_a_claim_asks_is_named_and_not_counted(devices: Json, why: str) -> None:
    item = claim("c")
    item["spec"]["devices"] = devices
    found = project_claim(item)
    assert not found.classes
    assert why in found.why_unread


def test_a_pod_counts_only_claims_that_kubernetes_made_for_it_alone() -> None:
    mine = project_pod(claiming(pod("a", gated=True, uid="u"), "c"))
    assert mine is not None
    known = offers(device_slice("n1", device("g0")))
    made, forged = claim("c", pod("a", uid="u")), claim("c", pod("b", uid="another"))
    counts = ClaimedDevices(known, [project_claim(made)], seen=True).of_pod(mine)
    assert counts.requests.devices == Devices.of({KIND: 1})
    assert ClaimedDevices(known, [project_claim(forged)], seen=True).of_pod(mine).devices_pending
    elsewhere = claim("c", pod("a", uid="u"))
    elsewhere["metadata"]["namespace"] = "other"
    assert ClaimedDevices(known, [project_claim(elsewhere)], seen=True).of_pod(mine).devices_pending


def test_a_claim_that_somebody_made_is_left_to_the_scheduler_and_its_devices_are_no_room() -> None:
    item = claiming(pod("a", on="n1", uid="u"))
    item["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    record = project_pod(item)
    assert record is not None
    known = offers(device_slice("n1", device("g0"), device("g1")))
    devices = ClaimedDevices(known, [project_claim(claim("shared", given=("g0",), on="n1"))], seen=True)
    assert "somebody made" in devices.of_pod(record).devices_unread
    (held,) = devices.held_by_others([devices.of_pod(record)], [])
    assert (held.node, held.requests.devices) == ("n1", Devices.of({KIND: 1}))


def test_a_device_of_a_class_that_a_container_requests_as_a_resource_counts_once() -> None:
    item = pod("a", on="n1", uid="u")
    item["spec"]["containers"][1]["resources"]["requests"][KIND] = "1"
    item["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "special"}
    trial, stranger = project_pod(item), project_other({**item, "metadata": {"uid": "s"}})
    assert trial is not None
    assert stranger is not None
    own = project_claim(claim("special", item, given=("g0",), on="n1"))
    known = offers(device_slice("n1", device("g0"), device("g1")))
    devices = ClaimedDevices(known, [own], seen=True)
    assert devices.of_pod(trial).requests.devices == Devices.of({KIND: 1})
    assert not any(one.requests.devices for one in devices.held_by_others([devices.of_pod(trial)], []))
    (plain, held) = devices.held_by_others([], [stranger])
    assert (plain.requests.devices, held.requests.devices) == (Devices(), Devices.of({KIND: 1}))


def test_a_pod_without_claims_has_none() -> None:
    assert claims_of(pod("a")) is NO_CLAIMS


def test_thousands_of_devices_and_huge_names_are_bounded() -> None:
    many = device_slice("n1", *(device(f"gpu-{number}") for number in range(MOST_DEVICES * 10)))
    found = project_slice(many)
    assert found is not None
    assert len(found.devices) == MOST_DEVICES
    attributes = {f"a{number}" * 20: {"string": "x" * 9000} for number in range(5000)}
    huge = device_slice("n1", device("y" * 9000), device("ok", attributes=attributes))
    read = project_slice(huge)
    assert read is not None
    assert [(one.name, dict(one.attributes)) for one in read.devices] == [("ok", {})]
    assert sys.getsizeof(read) < 1000
    item = claim("c", None, *[request()] * 32, given=tuple(f"g{number}" for number in range(9999)), on="n1")
    assert len(project_claim(item).given) == 32


@pytest.mark.parametrize("item", [device_slice("n1", device("a")), device_class(), claim("c", given=("a",), on="n1")])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_stands_in_any_place_of_an_object_is_read_without_a_failure(item: Json, data: st.DataObject) -> None:
    broken = json.loads(json.dumps(item))
    place: Any = broken
    for _ in range(data.draw(st.integers(1, 6))):
        keys = list(range(len(place))) if isinstance(place, list) else list(place) if isinstance(place, dict) else []
        if not keys:
            break
        holder, key = place, data.draw(st.sampled_from(keys))
        place = holder[key]
    holder[key] = data.draw(ANY_JSON)
    slices, classes = filter(None, [project_slice(broken)]), filter(None, [project_class(broken)])
    claims = [project_claim(broken), project_claim(claim("c", given=("a",), on="n1"))]
    found = ClaimedDevices(Offers(slices, classes), claims, seen=True)
    record = project_pod(claiming(pod("a"), "c"))
    assert record is not None
    found.of_pod(record)
    held = found.held_by_others([record], [])
    assert all(count > 0 for one in held for _, count in one.requests.devices.counts)


def test_what_is_free_and_what_is_held_add_up_to_what_is_offered() -> None:
    known = offers(device_slice("n1", *(device(f"g{number}") for number in range(5))))
    claims = [claim(f"c{number}", given=(f"g{number}",), on="n1") for number in range(3)]
    claims.append(claim("again", given=("g0", "g0", "unknown"), on="n1"))
    claims.append(claim("elsewhere", given=("g4",), on="n2"))
    devices = ClaimedDevices(known, map(project_claim, claims), seen=True)
    (held,) = devices.held_by_others([], [])
    assert held.requests.devices == Devices.of({KIND: 3}), "a device that two claims name is held once"
