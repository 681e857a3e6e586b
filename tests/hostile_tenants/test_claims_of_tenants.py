"""Resource claims that a tenant writes by hand: they take little memory, and nobody else's devices."""

import json
import tracemalloc
from typing import Any

import pytest

from controllers.core.devices import Devices
from controllers.worlds.argo.meaning.claimed_devices import ClaimedDevices, Offers
from controllers.worlds.argo.meaning.device_watch import _MOST_CLAIMS
from controllers.worlds.argo.reading.pods import project_pod
from controllers.worlds.argo.reading.resource_claims import ClaimRecord, project_claim
from controllers.worlds.argo.reading.resource_slices import project_class, project_slice
from controllers.worlds.argo.reading.watch import Collection, _Records
from tests.controllers.worlds.argo.objects import pod
from tests.controllers.worlds.argo.objects_of_claims import (
    KIND,
    claim,
    claiming,
    device,
    device_class,
    device_slice,
    request,
)

MIB = 2**20
MOST_MIB = 96


@pytest.fixture
def offers() -> Offers:
    read = project_slice(device_slice("n1", device("g0"), device("g1"))), project_class(device_class())
    assert read[0] is not None
    assert read[1] is not None
    return Offers([read[0]], [read[1]])


def test_a_namespaces_claims_with_the_longest_names_take_so_much_room_and_no_more() -> None:
    def hostile(number: int) -> Any:  # noqa: ANN401 - JSON
        names = [f"{number:06}-{index:02}{'x' * 240}" for index in range(32)]
        item = claim(f"c{number}", None, *(request(of=name) for name in names), given=tuple(names), on="y" * 253)
        return json.loads(json.dumps(item))  # no text is shared with another object's, as in an answer

    records = _Records[ClaimRecord](Collection("claims", most=_MOST_CLAIMS), lambda record: record.weight)
    tracemalloc.start()
    try:
        for number in range(1600):
            records.put("hostile", f"c{number}", project_claim(hostile(number)))
        used = tracemalloc.get_traced_memory()[0] / MIB
    finally:
        tracemalloc.stop()
    assert 100 < len(records.all()) < 1600
    assert used < MOST_MIB


def test_a_claim_that_says_it_is_anothers_gives_that_trial_no_device_and_takes_none_from_it(offers: Offers) -> None:
    victim = project_pod(claiming(pod("a", on="n1", uid="victim"), "mine"))
    assert victim is not None
    mine = project_claim(claim("mine", pod("a", uid="victim"), given=("g0",), on="n1"))
    forged = project_claim(claim("forged", pod("a", uid="victim"), request(9)))
    devices = ClaimedDevices(offers, [mine, forged], seen=True)
    assert devices.of_pod(victim).requests.devices == Devices.of({KIND: 1})


def test_a_claim_that_hides_behind_a_trial_of_its_own_holds_its_devices_all_the_same(offers: Offers) -> None:
    trial = project_pod(claiming(pod("a", on="n1", uid="own"), "made"))
    assert trial is not None
    made = project_claim(claim("made", pod("a", uid="own"), given=("g0",), on="n1"))
    hidden = project_claim(claim("hidden", pod("a", uid="own"), given=("g1",), on="n1"))
    devices = ClaimedDevices(offers, [made, hidden], seen=True)
    (held,) = devices.held_by_others([devices.of_pod(trial)], [])
    assert held.requests.devices == Devices.of({KIND: 1})


def test_a_claim_of_two_billion_devices_waits_and_disturbs_no_sum(offers: Offers) -> None:
    greedy = project_pod(claiming(pod("a", gated=True, uid="own"), "made"))
    assert greedy is not None
    huge = project_claim(claim("made", pod("a", uid="own"), request(2**63)))
    assert "devices of class" in huge.why_unread
    assert ClaimedDevices(offers, [huge], seen=True).of_pod(greedy).devices_unread
