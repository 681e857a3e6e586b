"""Tenants that ask for more than their part by many sweeps, by lies and by deafness: what is left to the others."""

import pytest

from controllers.core.model import NodeName
from controllers.policies.arbiter import Arbiter, ArbiterState, NamespaceTerms
from tests.controllers.policies.arbiter.neighbours import Neighbours, Tenant
from tests.controllers.policies.arbiter.sharing_sweeps import many, nodes, runs, sweep, waits

VICTIM = Tenant("victim", trials=9, at=600.0)
MANY = Tenant("many", sweeps=99)


def held(*tenants: Tenant, first: float, until: float, **terms: NamespaceTerms) -> dict[str, float]:
    return Neighbours(tenants, nodes(2), Arbiter(terms=terms)).held(first, until)


def test_many_sweeps_of_a_namespace_leave_another_of_higher_priority_most_of_the_cluster() -> None:
    had = held(MANY, VICTIM, first=1800.0, until=2700.0, victim=NamespaceTerms(priority=100))
    assert had["victim"] >= 0.85, "one trial's worth at a time is what patience gives a namespace"
    assert had["many"] > 0.0


def test_many_sweeps_of_a_namespace_leave_another_of_the_same_priority_its_half() -> None:
    assert held(MANY, VICTIM, first=1800.0, until=2700.0)["victim"] >= 0.45


def test_each_of_a_low_namespaces_sweeps_gets_its_turn() -> None:
    low = Tenant("low", sweeps=4)
    side = Neighbours((low, VICTIM), nodes(1), Arbiter(terms={"victim": NamespaceTerms(priority=100)}))
    side.held(0.0, 7200.0)
    assert {f"{name}.000" for name in low.names()} <= side.ran


def test_a_sweep_of_wide_trials_gets_its_turn_though_its_namespace_has_something() -> None:
    small, wide = Tenant("red", trials=4, prefix="small"), Tenant("red", cpu=4.0, prefix="wide")
    side = Neighbours((small, wide, VICTIM), nodes(1), Arbiter())
    side.held(0.0, 7200.0)
    assert "wide000.000" in side.ran


@pytest.mark.parametrize("priority", [0, 100])
def test_trials_that_always_say_that_they_end_soon_are_believed_only_until_they_should_have(priority: int) -> None:
    liars = Tenant("liars", trials=30, says_left_s=30.0)
    had = held(liars, VICTIM, first=2400.0, until=4800.0, victim=NamespaceTerms(priority=priority))
    assert had["victim"] >= (0.9 if priority else 0.45)


@pytest.mark.parametrize("priority", [0, 100])
def test_deaf_trials_keep_nobody_elses_room_from_being_given_back(priority: int) -> None:
    deaf = Tenant("red", trials=2, leaves_after_s=1e6, prefix="deaf")
    hearing = Tenant("red", trials=30, prefix="hearing")
    had = held(deaf, hearing, VICTIM, first=2400.0, until=4800.0, victim=NamespaceTerms(priority=priority))
    assert had["victim"] >= (0.65 if priority else 0.45)


def test_a_deaf_trial_counts_against_its_own_namespace_once_it_should_have_left() -> None:
    asked = (runs(f"r{n}", "n0", steady=False, leaving=True) for n in range(2))
    sweeps = [sweep("red", *asked, *many("w", 9)), sweep("blue", *many("b", 9))]
    arbiter = Arbiter(lapses=900.0)
    first = arbiter.decide(0.0, sweeps, nodes(1, 8.0), ArbiterState())
    later = arbiter.decide(130.0, sweeps, nodes(1, 8.0), first.state)
    assert [first.parts[name].entitled.cpu for name in ("red", "blue")] == [4.0, 4.0]
    assert [later.parts[name].entitled.cpu for name in ("red", "blue")] == [3.0, 5.0], "the deaf ones count"


def test_room_that_a_deaf_move_still_holds_is_not_promised_to_others() -> None:
    moving = runs("r", "n1", 4.0, steady=False, comes_from=(NodeName("n0"),))
    sweeps = [sweep("red", moving), sweep("blue", waits("b", 4.0))]
    arbiter = Arbiter(lapses=900.0)
    first = arbiter.decide(0.0, sweeps, nodes(2), ArbiterState())
    later = arbiter.decide(130.0, sweeps, nodes(2), first.state)
    assert "room for what waits" in first.parts["blue"].reason
    assert "to give back" in later.parts["blue"].reason


def test_room_that_a_deaf_trial_leaves_at_last_goes_to_who_waited_for_it() -> None:
    deaf = Tenant("deaf", trials=30, leaves_after_s=900.0)
    assert held(deaf, VICTIM, first=4800.0, until=7200.0)["victim"] >= 0.45
