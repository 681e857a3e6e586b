"""Ranges of ends where others use the nodes too: as wide as what was seen of them makes the end uncertain."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.forecast import EndRange
from controllers.core.model import Node, NodeName, Snapshot
from controllers.forecast.ranges import DRAWS, PolicyTraits, forecast
from controllers.forecast.supplies import STAYS, Gave, Supplies, drawn_supplies, supplies_after
from tests.controllers.forecast.sweeps import at_step, seen, trial

NODE = NodeName("n")


def node(supply: float) -> Node:
    return Node(NODE, 4.0, supply=supply)


def after(*looks: tuple[float, float]) -> Supplies:
    """Return what is known after looks at a node of 4 cores, each with its time and its supply."""
    known = Supplies()
    for at, supply in looks:
        known = supplies_after(Snapshot(at, (), (node(supply),)), known)
    return known


def test_a_node_that_always_gave_all_leaves_no_course_open() -> None:
    assert drawn_supplies([node(4.0)], after((0.0, 4.0), (500.0, 4.0)), 3) == [(), (), ()]


def test_half_of_the_courses_go_on_as_it_is_and_the_others_lie_between_the_least_and_the_most() -> None:
    draws = DRAWS[0]
    cores = [each for (each,) in drawn_supplies([node(2.0)], after((0.0, 4.0), (10.0, 1.0), (20.0, 2.0)), draws)]
    assert cores.count(2.0) == pytest.approx(STAYS * draws, abs=1)
    assert 1.0 <= min(cores) < 1.3
    assert 3.7 < max(cores) <= 4.0


def test_nodes_lack_together() -> None:
    both = [replace(node(2.0), name=NodeName(name)) for name in ("m", "n")]
    gave = Supplies(9.0, {each.name: Gave(0.25, 1.0) for each in both})
    assert all(first == second for first, second in drawn_supplies(both, gave, DRAWS[0]))


def test_what_a_node_once_gave_is_forgotten() -> None:
    gave = after((0.0, 1.0), (10.0, 4.0)).nodes[NODE]
    much_later = after((0.0, 1.0), (10.0, 4.0), (5000.0, 4.0)).nodes[NODE]
    assert gave.least < 0.3
    assert gave.least < much_later.least < much_later.most == 1.0


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(1e-3, 4)), min_size=1, max_size=8))
def test_what_a_node_gives_now_lies_within_what_it_gave(looks: list[tuple[float, float]]) -> None:
    gave = after(*sorted(looks)).nodes[NODE]
    assert 0 < gave.least <= max(looks)[1] / 4 <= gave.most <= 1.0


def end_of(supply: float, supplies: Supplies) -> EndRange:
    looks = [(at, [at_step(trial("a"), step, at, 2.0)]) for step, at in ((10, 20.0), (20, 40.0))]
    snapshot, known = seen(*looks)
    nodes = tuple(replace(each, supply=supply) for each in snapshot.nodes)
    found = forecast(replace(snapshot, nodes=nodes), known, [], PolicyTraits(), supplies=supplies).end
    assert found is not None
    return found.left(40.0)


def test_a_range_holds_that_others_leave_and_that_they_come_back() -> None:
    snapshot, _ = seen((0.0, [trial("a")]))
    names = [each.name for each in snapshot.nodes]
    cores = snapshot.nodes[0].cpu
    steady = end_of(cores / 4, Supplies())
    open_ended = end_of(cores / 4, Supplies(40.0, dict.fromkeys(names, Gave(0.125, 1.0))))
    assert open_ended.low < 0.7 * steady.low
    assert open_ended.high > 1.1 * steady.high
