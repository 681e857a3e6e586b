"""Nodes that could come are filled one after the other, the cheapest first, and never more than there can be."""

import math

from controllers.core.devices import Devices
from controllers.core.model import NodeKind
from controllers.policies.kit.new_nodes import NewNodes
from tests.controllers.policies.policy_fakes import trial

GPU = Devices.of({"nvidia.com/gpu": 1})


def filled(*kinds: NodeKind, cpus: tuple[float, ...] = (1.0,) * 5) -> list[str]:
    """Return the kind of node for each trial that finds a place."""
    new = NewNodes(kinds)
    taken = [one for number, cpu in enumerate(cpus) if new.take(one := trial(f"t{number}", cpu=cpu))]
    return [new.kinds[new.places[one.id]].name for one in taken]


def test_a_node_is_filled_before_another_is_opened_and_no_more_are_than_there_can_be() -> None:
    new = NewNodes([NodeKind("a", 2.0, more=1.0, coming=1)])
    assert [new.take(trial(f"t{number}")) for number in range(5)] == [True] * 4 + [False]
    assert [len([1 for node in new.places.values() if node == one.name]) for one in new.nodes] == [2, 2]


def test_what_is_cheaper_for_each_core_goes_first_then_what_is_there_sooner() -> None:
    dear, cheap = NodeKind("dear", 2.0, price=1.0, more=9), NodeKind("cheap", 8.0, price=2.0, more=9)
    assert set(filled(dear, cheap)) == {"cheap"}
    late, soon = NodeKind("late", 2.0, boots_s=300, more=9), NodeKind("soon", 2.0, boots_s=60, more=9)
    assert set(filled(late, soon)) == {"soon"}
    assert filled(NodeKind("soon", 2.0, boots_s=60, more=1), late) == ["soon", "soon", "late", "late", "late"]


def test_a_node_with_devices_is_for_those_that_ask_for_them_if_there_is_another() -> None:
    gpus = NodeKind("gpus", 2.0, devices=GPU, price=0.1, more=9)
    assert set(filled(gpus, NodeKind("plain", 2.0, price=5.0, more=9))) == {"plain"}
    new = NewNodes([gpus, NodeKind("plain", 2.0, more=9)])
    assert new.take(trial("a", devices=GPU))
    assert new.take(trial("b", devices=GPU))
    assert [node.kind for node in new.nodes] == ["gpus", "gpus"]


def test_a_trial_goes_to_no_kind_that_is_too_small_or_none_for_it() -> None:
    assert filled(NodeKind("a", 2.0, memory=1.0, more=9), cpus=(3.0,)) == []
    assert not NewNodes([NodeKind("a", 2.0, memory=1.0)]).take(trial("a", memory=2.0))
    assert not NewNodes([NodeKind("a", 2.0, devices=GPU, only_for=GPU.kinds())]).take(trial("a"))
    assert not NewNodes([NodeKind("a", 2.0)]).take(trial("a", may_ask=frozenset({"b"})))
    assert NewNodes([NodeKind("a", 2.0)]).take(trial("a", may_use=frozenset(), may_ask=frozenset({"a"})))


def test_there_are_bounds_where_there_can_be_any_number() -> None:
    new = NewNodes([NodeKind("a", 1.0, more=math.inf)])
    assert not all(new.take(trial(f"t{number}")) for number in range(1000))
