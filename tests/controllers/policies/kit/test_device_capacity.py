"""Whole devices: what policies count on nodes, so that none is given twice."""

from dataclasses import replace
from typing import Any

import pytest

from controllers.core.actions import Migrate, Place
from controllers.core.devices import NO_DEVICES, Devices, is_device
from controllers.core.model import Node, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.core.policy import Policy
from controllers.policies import Default, Edf, Guarded, LeastUsed, Pinned
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.occupancy import Occupancy
from tests.controllers.policies.policy_fakes import node, snapshot, trial

GPU, FPGA = "example.com/gpu", "example.com/fpga"
A, N = TrialId("a"), NodeName("n")


def gpus(count: int) -> Devices:
    return Devices.of({GPU: count})


def asking(name: str, *nodes: str, count: int = 1, **changes: object) -> Trial:
    return replace(trial(name, *nodes), devices=gpus(count), **changes)  # type: ignore[arg-type]  # fields of Trial


def waiting(name: str, count: int = 1) -> Trial:
    return asking(name, count=count, phase=Phase.PENDING, gated=True, attempt=0, workers=1)


def fits(asked: Trial, *others: Trial, on: Node) -> bool:
    return Capacity.of(snapshot(0.0, [asked, *others], [on, node("m")])).fits(asked, on.name)


def test_a_trial_fits_where_as_many_of_each_kind_are_free() -> None:
    two = node("n", devices=gpus(2))
    assert fits(waiting("a", 2), on=two)
    assert fits(waiting("a"), asking("b", "n"), on=two)
    assert not fits(waiting("a", 2), asking("b", "n"), on=two)
    assert not fits(replace(waiting("a"), devices=Devices.of({GPU: 1, FPGA: 1})), on=two)
    assert not fits(waiting("a"), on=node("n"))


def test_a_move_under_way_holds_devices_at_both_ends() -> None:
    moving = asking("b", "m", phase=Phase.MOVING, destination=(N,))
    assert not fits(waiting("a"), moving, on=node("n", devices=gpus(1)))


def test_each_worker_holds_its_own() -> None:
    assert not fits(replace(waiting("a"), workers=3, min_workers=3), on=node("n", devices=gpus(2)))
    assert fits(replace(waiting("a"), workers=2), on=node("n", devices=gpus(2)))


def test_devices_of_another_kind_that_a_node_has_lost_keep_nobody_away() -> None:
    lost = replace(trial("b", "n"), devices=Devices.of({FPGA: 1}))
    assert fits(waiting("a"), lost, on=node("n", devices=gpus(1)))
    assert fits(trial("c", phase=Phase.PENDING, attempt=0), lost, on=node("n", devices=gpus(1)))


def test_what_an_attempt_holds_that_has_yet_to_run_counts_once() -> None:
    starting = asking("b", phase=Phase.PENDING, attempt=0)
    seen = snapshot(0.0, [waiting("a"), starting], [node("n", devices=gpus(2), devices_starting=gpus(1))])
    assert Capacity.of(seen).fits(seen.trials[0], N)
    assert Occupancy.of(seen, {starting.id: N}).capacity.fits(seen.trials[0], N)
    full = snapshot(0.0, seen.trials, [replace(seen.nodes[0], devices=gpus(1))])
    assert not Capacity.of(full).fits(seen.trials[0], N)


def test_a_node_kept_for_a_device_takes_only_who_asks_for_it() -> None:
    kept = node("n", devices=gpus(1), only_for=frozenset({GPU}))
    assert fits(waiting("a"), on=kept)
    assert not fits(trial("a", phase=Phase.PENDING, attempt=0), on=kept)


@pytest.mark.parametrize(
    ("room", "there"),
    [(3, ()), (2, (asking("b", "n"),)), (0, (asking("b", "n", count=3),)), (1, (trial("b", "n", cpu=3.0),))],
)
def test_room_is_how_many_more_of_a_kind_fit(room: int, there: tuple[Trial, ...]) -> None:
    seen = snapshot(0.0, [waiting("a"), *there], [node("n", 4.0, devices=gpus(3))])
    assert Capacity.of(seen).room(seen.trials[0], N) == room


@pytest.mark.parametrize("policy", [Edf(), LeastUsed(), Guarded(policy=Pinned(policy=Default(), first_nodes={A: "n"}))])
def test_whoever_places_gives_a_device_once(policy: Policy[Any]) -> None:
    seen = Snapshot(0.0, (waiting("a"), waiting("b")), (node("n", devices=gpus(1)),))
    decision = policy.decide(seen, policy.initial())
    on_a_node = [p.action for p in decision.proposals if isinstance(p.action, Place) and p.action.node is not None]
    assert on_a_node == [Place(A, (N,))]


def test_a_pin_is_kept_while_the_device_is_held_and_given_up_where_there_is_none() -> None:
    pinned = Pinned(policy=Default(), first_nodes={A: "n"})

    def told(place: Node) -> tuple[str | None, str]:
        (proposal,) = pinned.decide(snapshot(0.0, [waiting("a")], [place]), pinned.initial()).proposals
        assert isinstance(proposal.action, Place)
        return proposal.action.node, proposal.reason

    assert told(node("n", devices=gpus(1), devices_starting=gpus(1)))[0] == "n"
    assert told(node("n")) == (None, f"its first node 'n' does not have 1 {GPU}")
    assert told(node("n", devices=gpus(1), only_for=frozenset({FPGA})))[1].endswith(f"takes only trials with {FPGA}")


def test_guards_let_no_move_through_to_a_node_without_the_device() -> None:
    seen = snapshot(0.0, [asking("a", "n")], [node("n", devices=gpus(1)), node("m")])
    assert not Capacity.of(seen).allows(Migrate(A, (NodeName("m"),)))


def test_devices_add_up_by_kind_and_none_are_left_out() -> None:
    both = Devices.of({GPU: 2, FPGA: 1})
    assert both - gpus(2) == Devices.of({FPGA: 1})
    assert gpus(1) - both == Devices.of({GPU: -1, FPGA: -1})
    assert (gpus(1) - both).positive() == NO_DEVICES
    assert both * 2 == both + both
    assert str(both) == f"1 {FPGA}, 2 {GPU}"
    assert not Devices.of({GPU: 0})


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("nvidia.com/gpu", True),
        ("example.com/mig-1g.5gb", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/thing", False),
        ("sub.kubernetes.io/thing", False),
        ("nvidia.com/", False),
        ("Nvidia.com/gpu", False),
        ("a/b/c", False),
        (f"{'a' * 253}/{'b' * 64}", False),
    ],
)
def test_a_device_has_a_domain_that_is_not_kubernetes_own(name: str, device: bool) -> None:  # noqa: FBT001 - a case
    assert is_device(name) is device


def test_a_trial_fits_on_no_node_but_those_it_may_use() -> None:
    choosy = replace(waiting("a", 0), may_use=frozenset({NodeName("m")}))
    capacity = Capacity.of(snapshot(0.0, [choosy], [node("m"), node("n")]))
    assert [capacity.fits(choosy, NodeName(name)) for name in "mn"] == [True, False]
