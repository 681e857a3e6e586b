"""Trials are off a node before it goes, if anything can be done, and nothing else changes."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Decision, Migrate, Place, Proposal, Resize, Stop, Suspend
from controllers.core.model import Node, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.core.policy import Policy
from controllers.policies import Default, Guarded, OffLeavingNodes
from controllers.policies.kit.capacity import Capacity
from controllers.policies.wrappers.off_leaving_nodes import LAST_CALL_S, LEAST_S
from tests.controllers.policies.policy_fakes import node, snapshot, trial
from tests.controllers.policies.wrappers.test_stacked import Scripted, move, resize

NOW = 1000.0
GIB = 2.0**30
A, B = TrialId("a"), TrialId("b")


def goes(name: str = "w1", within: float = 100.0, **changes: Any) -> Node:  # noqa: ANN401 - fields of Node
    return node(name, 8.0, ready=False, leaves_at=NOW + within, **changes)


class Placing(Scripted):
    """Gives places, as far as anybody can see."""

    needs = frozenset({Place})


def decide(policy: Policy[Any], *trials: Trial, nodes: tuple[Node, ...]) -> Decision[Any]:
    around = OffLeavingNodes(policy=policy)
    return around.decide(snapshot(NOW, trials, nodes), around.initial())


def actions(policy: Policy[Any], *trials: Trial, nodes: tuple[Node, ...]) -> list[Any]:
    return [proposal.action for proposal in decide(policy, *trials, nodes=nodes).proposals]


def test_trials_move_to_the_node_that_stays_and_has_the_most_room() -> None:
    nodes = (goes(), node("w2", 2.0), node("w3", 8.0), node("w4", 16.0, ready=False), goes("w5"))
    assert actions(Default(), trial("a", "w1"), trial("b", "w2"), nodes=nodes) == [Migrate(A, (NodeName("w3"),))]


def test_where_no_node_goes_the_policy_alone_decides() -> None:
    wanted = Decision(None, (resize(A, 2.0),))
    assert decide(Scripted(wanted.proposals), trial("a", "w1"), nodes=(node("w1"),)).proposals == wanted.proposals


def test_room_goes_to_those_that_are_the_shortest_to_save_and_then_to_those_that_end_first() -> None:
    nodes = (goes(within=50.0), node("w2", 2.0))
    big, small = trial("a", "w1", memory=4 * GIB), trial("b", "w1", memory=GIB)
    other = trial("c", "w1", memory=4 * GIB, progress=Progress(1.0, 0.5, 0.5, 500, NOW, steps_total=600))
    saved = actions(Default(), big, small, other, nodes=nodes)
    assert [action.trial for action in saved] == ["b", "c"]


def test_without_room_a_trial_trains_on_until_the_last_call_and_then_waits_for_a_place() -> None:
    full = (node("w2", 0.5),)
    early = decide(Placing(()), trial("a", "w1"), nodes=(goes(within=100.0), *full))
    assert (early.proposals, early.wake_at) == ((), NOW + 100.0 - LAST_CALL_S)
    assert actions(Placing(()), trial("a", "w1"), nodes=(goes(within=LAST_CALL_S), *full)) == [Suspend(A)]
    # Nobody would start it again.
    assert actions(Default(), trial("a", "w1"), nodes=(goes(within=LAST_CALL_S), *full)) == []


def test_one_that_cannot_be_saved_any_more_is_left_alone_unless_its_node_outlives_the_deadline() -> None:
    room = (node("w2", 8.0),)
    assert actions(Placing(()), trial("a", "w1"), nodes=(goes(within=LEAST_S / 2), *room)) == []
    assert actions(Placing(()), trial("a", "w1"), nodes=(goes(within=-5.0), *room)) == [Migrate(A, (NodeName("w2"),))]
    assert actions(Placing(()), trial("a", "w1"), nodes=(goes(within=-5.0), node("w2", 0.5))) == []


@pytest.mark.parametrize(("step", "stays"), [(950, True), (900, False), (0, False)])
def test_one_that_ends_before_its_node_goes_stays(step: int, stays: bool) -> None:  # noqa: FBT001 - a row of a table
    # It began at 0, and is at step 950 of 1000 at 1000 s: a step takes a little more than a second.
    one = trial("a", "w1", progress=Progress(1.0, 0.5, 0.5, step, NOW, steps_total=1000))
    assert (actions(Default(), one, nodes=(goes(within=100.0), node("w2", 8.0))) == []) is stays


@pytest.mark.parametrize(
    "phase", [Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING, Phase.PENDING, Phase.SUSPENDED, Phase.FAILED]
)
def test_none_is_told_to_leave_twice(phase: Phase) -> None:
    assert actions(Placing(()), trial("a", "w1", phase=phase), nodes=(goes(), node("w2", 8.0))) == []


def test_what_the_policy_wants_goes_first_but_for_a_share_of_a_node_that_goes() -> None:
    nodes = (goes(), node("w2", 8.0), node("w3", 8.0))
    for own in (move(A, "w3"), Proposal(Suspend(A), ""), Proposal(Stop(A, "enough"), "")):
        assert actions(Scripted((own,)), trial("a", "w1"), nodes=nodes) == [own.action]
    assert actions(Scripted((resize(A, 2.0),)), trial("a", "w1"), nodes=nodes) == [Migrate(A, (NodeName("w2"),))]


def test_saving_goes_before_what_else_wants_the_room() -> None:
    nodes = (goes(), node("w2", 1.0))
    waits = trial("b", phase=Phase.PENDING, gated=True)
    around = Guarded(policy=OffLeavingNodes(policy=Scripted((Proposal(Place.on(NodeName("w2"), waits), ""),))))
    decision = around.decide(snapshot(NOW, [trial("a", "w1"), waits], nodes), around.initial())
    assert [proposal.action for proposal in decision.proposals] == [Migrate(A, (NodeName("w2"),))]


def test_a_gang_moves_as_a_whole_if_one_of_its_nodes_goes() -> None:
    gang = trial("a", "w1", "w2", min_workers=2, max_workers=2)
    assert actions(Default(), gang, nodes=(goes(), node("w2", 2.0), node("w3", 1.0))) == [
        Migrate(A, (NodeName("w2"),) * 2)
    ]
    assert actions(Default(), gang, nodes=(goes(), node("w2", 1.0), node("w3", 1.0))) == [
        Migrate(A, (NodeName("w2"), NodeName("w3")))
    ]
    assert actions(Default(), gang, nodes=(goes(), node("w2", 1.0), node("w3", 0.5))) == []


def test_guards_hold_no_trial_back_whose_node_goes() -> None:
    stale = Progress(1.0, 0.5, 0.5, 9, 1.0)
    trials = [trial(name, "w1", progress=stale) for name in "abcdefgh"]
    around = Guarded(policy=OffLeavingNodes(policy=Default()))
    just_moved = replace(around.initial(), moved_at={A: NOW - 1.0})
    decision = around.decide(snapshot(NOW, trials, (goes(), node("w2", 7.0))), just_moved)
    assert len(decision.proposals) == 7
    assert decision.vetoed == ()


def test_guards_count_no_forced_move_among_those_that_may_be_under_way() -> None:
    fresh = Progress(1.0, 0.5, 0.5, 9, NOW)
    forced = [trial(name, "w1", phase=Phase.MOVING, destination=(NodeName("w3"),)) for name in "cde"]
    around = Guarded(policy=Scripted((move(A, "w3"),)))
    seen = snapshot(NOW, [trial("a", "w2", progress=fresh), *forced], (goes(), node("w2"), node("w3")))
    assert len(around.decide(seen, around.initial()).proposals) == 1


cores = st.sampled_from([0.5, 1.0, 2.0])


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Return trials on up to four nodes, within capacity; some of the nodes go."""
    nodes = [
        node(f"w{number}", 8.0, memory=8 * GIB)
        if draw(st.booleans())
        else node(f"w{number}", 8.0, memory=8 * GIB, ready=False, leaves_at=NOW + draw(st.floats(-50, 300)))
        for number in range(draw(st.integers(1, 4)))
    ]
    free = {one.name: one.cpu for one in nodes}
    trials = []
    for number in range(draw(st.integers(0, 12))):
        where, cpu = draw(st.sampled_from(nodes)).name, draw(cores)
        if cpu <= free[where]:
            free[where] -= cpu
            memory = draw(st.sampled_from([0.5, 1.0])) * GIB
            phase = draw(st.sampled_from([Phase.RUNNING, Phase.RUNNING, Phase.RUNNING, Phase.SUSPENDING]))
            trials.append(trial(f"t{number:02}", where, cpu=cpu, memory=memory, phase=phase))
    return snapshot(NOW, trials, nodes)


@given(clusters(), st.sampled_from([Default(), Placing(())]))
def test_whatever_goes_each_trial_is_told_once_and_every_node_stays_within_what_it_has(
    seen: Snapshot, policy: Policy[Any]
) -> None:
    around = OffLeavingNodes(policy=policy)
    decision = around.decide(seen, around.initial())
    capacity, told = Capacity.of(seen), [proposal.action.trial for proposal in decision.proposals]
    goes = {one.name: one for one in seen.nodes if one.leaves_at is not None}
    assert len(told) == len(set(told))
    for proposal in decision.proposals:
        action, one = proposal.action, seen.named[proposal.action.trial]
        assert isinstance(action, Migrate | Suspend)
        assert one.phase is Phase.RUNNING
        assert one.node in goes
        assert capacity.allows(action)
        capacity.apply(action)
    # Nobody is left where there was time, and room for the smallest.
    left = [one for one in seen.unended if one.steady and one.node in goes and one.id not in told]
    for one in left:
        deadline = goes[one.nodes[0]].leaves_at or 0.0
        assert 0 <= deadline - NOW < LEAST_S or not any(capacity.holds(one, name, 1) for name in capacity.nodes)


@given(clusters())
def test_a_decision_passes_the_guards_as_it_is(seen: Snapshot) -> None:
    within = OffLeavingNodes(policy=Placing(()))
    around = Guarded(policy=within)
    wanted, passed = within.decide(seen, within.initial()), around.decide(seen, around.initial())
    assert (passed.proposals, passed.vetoed) == (wanted.proposals, ())


@given(clusters())
def test_without_leaving_nodes_nothing_is_added(seen: Snapshot) -> None:
    stays = replace(seen, nodes=tuple(replace(one, leaves_at=None) for one in seen.nodes))
    script = Scripted((Proposal(Resize(A, 1.0), ""),))
    assert OffLeavingNodes(policy=script).decide(stays, script.initial()) == script.decide(stays, script.initial())
