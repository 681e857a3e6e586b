"""Moves of ``ahead`` that make room for a trial which fits nowhere."""

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from controllers.core.actions import Migrate, Place, Proposal
from controllers.core.model import NodeName, Phase, Trial, TrialId
from controllers.policies.ahead.moving import choose_moves
from controllers.policies.ahead.placing import place_trials
from controllers.policies.ahead.planning import WORTH, Weights, WorkPlan
from controllers.policies.ahead.room import exchanges, seconds_until_room
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.lengths import EstimateSource
from controllers.policies.kit.work_left import Estimate
from tests.controllers.policies.policy_fakes import node, snapshot, trial

MOVE_COST = 5.0
NODES = [node("n", 4.0), node("m", 4.0)]


def waits(name: str, cpu: float) -> Trial:
    return trial(name, cpu=cpu, phase=Phase.PENDING, gated=True, attempt=0)


def proposed(trials: Sequence[Trial], seconds: Mapping[str, float]) -> list[Proposal]:
    """Return what is placed and moved on two nodes of four cores, where each trial uses the cores that it asks for."""
    seen = snapshot(0.0, trials, NODES)
    estimates = {
        one.id: Estimate(one, seconds[one.id] * one.cpu, one.cpu, 0.1, EstimateSource.OWN, one.cpu) for one in trials
    }
    plan = WorkPlan(seen, estimates, {}, Weights(1.0, 0.0, 1.0, MOVE_COST))
    return [*place_trials(plan), *choose_moves(plan, [one.id for one in trials if one.steady])]


def two_on_each(**changes: Phase | tuple[NodeName, ...]) -> list[Trial]:
    return [trial("a", "n", cpu=2.0, **changes), trial("b", "m", cpu=2.0), waits("wide", 4.0)]


LONG = {"a": 300.0, "b": 400.0, "wide": 100.0}


def test_a_small_trial_moves_to_idle_cores_so_that_a_wide_one_can_start() -> None:
    (found,) = proposed(two_on_each(), LONG)
    assert found.action == Migrate(TrialId("a"), (NodeName("m"),))
    assert found.reason == "moving: wide gets room on n, for which it would wait 300 s at least"


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param({"a": 2.9 * MOVE_COST, "b": 400.0, "wide": 100.0}, id="room-comes-by-itself-soon"),
        pytest.param({"a": 1.9 * MOVE_COST, "b": 1.9 * MOVE_COST, "wide": 100.0}, id="those-that-run-are-nearly-done"),
    ],
)
def test_nobody_moves_where_the_wait_is_hardly_longer_than_what_a_move_takes(seconds: Mapping[str, float]) -> None:
    assert WORTH == 2.0
    assert proposed(two_on_each(), seconds) == []


@pytest.mark.parametrize("phase", [Phase.SUSPENDING, Phase.STOPPING])
def test_nobody_moves_where_somebody_leaves_already(phase: Phase) -> None:
    assert proposed(two_on_each(phase=phase), LONG) == []


def test_nobody_else_moves_while_a_move_under_way_makes_room() -> None:
    assert proposed(two_on_each(phase=Phase.MOVING, destination=(NodeName("m"),)), LONG) == []


def test_nobody_moves_where_no_other_node_has_room_or_one_move_is_not_enough() -> None:
    full = [trial("a", "n", cpu=2.0), trial("b", "m", cpu=3.0), waits("wide", 4.0)]
    assert proposed(full, LONG) == []
    small = [trial(name, "n", cpu=1.0) for name in ("a", "b", "c")]
    crowded = [*small, trial("d", "m", cpu=2.0), waits("wide", 4.0)]
    assert proposed(crowded, dict.fromkeys(("a", "b", "c", "d"), 300.0) | {"wide": 100.0}) == []


def test_a_trial_that_fits_is_placed_and_nobody_moves_for_it() -> None:
    (found,) = proposed([*two_on_each()[:2], waits("small", 2.0)], {**LONG, "small": 100.0})
    assert isinstance(found.action, Place)


drawn_trials = st.lists(
    st.tuples(st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 2), st.floats(1.0, 900.0)), max_size=9
)


@example([(0.5, 0, 899.0), (2.0, 2, 500.0), (2.0, 1, 2.0)], 3.0)
@given(drawn_trials, st.sampled_from([1.0, 2.0, 3.0, 4.0]))
def test_room_comes_when_enough_have_ended_and_an_exchange_makes_it_at_once(
    drawn: list[tuple[float, int, float]], cpu: float
) -> None:
    nodes = [node(f"n{number}", 3.0) for number in range(3)]
    live = [trial(f"r{number}", f"n{where}", cpu=asked) for number, (asked, where, _) in enumerate(drawn)]
    wide = waits("wide", cpu)
    capacity = Capacity.of(snapshot(0.0, [*live, wide], nodes))
    ends = {
        place.name: sorted(
            ((drawn[int(one.id[1:])][2], one) for one in live if one.node == place.name), key=lambda end: end[0]
        )
        for place in nodes
    }

    def fits_after(seconds: float) -> bool:
        left = [one for line in ends.values() for end, one in line if end > seconds]
        then = Capacity.of(snapshot(0.0, [*left, wide], nodes))
        return any(then.fits(wide, place.name) for place in nodes)

    # The caller has seen that there is no room yet.
    assume(not fits_after(0.0))
    before = {place.name: capacity.taken(place.name) for place in nodes}
    known = sorted(end for line in ends.values() for end, _ in line)
    assert seconds_until_room(wide, ends, capacity) == next((end for end in known if fits_after(end)), math.inf)
    for one, source, target in exchanges(wide, ends, capacity, {r.id for r in live}):
        after = capacity.copy()
        after.apply(Migrate(one.id, (target,)))
        after.release(one, (source,))
        assert after.fits(wide, source)
        assert capacity.allows(Migrate(one.id, (target,)))
    assert {place.name: pytest.approx(capacity.taken(place.name)) for place in nodes} == before
