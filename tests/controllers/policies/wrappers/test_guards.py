import math
from dataclasses import replace
from typing import Any

import pytest

from controllers.core.actions import Decision, Migrate, Place, Proposal, Resize
from controllers.core.model import Node, NodeName, Phase, Progress, Trial, TrialId
from controllers.core.policy import PolicyStateError, dump_state, load_state
from controllers.policies import Guarded
from tests.controllers.policies.policy_fakes import moves, node, resizes, snapshot, trial
from tests.controllers.policies.wrappers.test_stacked import Scripted, move, resize

A, B = TrialId("a"), TrialId("b")
NODES = (node("w1", 8.0), node("w2", 8.0))
FRESH = Progress(1.0, 0.5, 0.5, 9, 95.0)


def running(name: str, **changes: Any) -> Trial:  # noqa: ANN401 - fields of Trial
    return trial(name, "w1", **{"progress": FRESH, **changes})


def guarded(
    trials: list[Trial], *wanted: Proposal, nodes: tuple[Node, ...] = NODES, **parameters: float
) -> Decision[Any]:
    guards = Guarded(policy=Scripted(wanted), **parameters)
    return guards.decide(snapshot(100.0, trials, nodes), guards.initial())


def objections(decision: Decision[Any]) -> list[str]:
    return [objection for _, objection in decision.vetoed]


def test_what_is_safe_goes_through_unchanged() -> None:
    decision = guarded([running("a"), running("b")], move(A, "w2"), resize(B, 2.0))
    assert moves(decision) == [("a", "w2")]
    assert resizes(decision) == {"b": 2.0}
    assert decision.vetoed == ()


def test_a_trial_is_left_alone_for_the_cooldown_and_no_longer() -> None:
    guards = Guarded(policy=Scripted((resize(A, 2.0),)), resize_cooldown=10.0)
    state = guards.initial()
    passed = []
    for now in (100.0, 105.0, 109.9, 110.0):
        decision = guards.decide(snapshot(now, [running("a")], NODES), state)
        state = load_state(guards, dump_state(guards, decision.state))
        passed.append(len(decision.proposals))
    assert passed == [1, 0, 0, 1]


def test_a_change_of_its_share_holds_no_move_of_a_trial_back_but_a_move_does() -> None:
    resizing, moving = (resize(A, 2.0),), (move(A, "w2"),)
    for first, then_moves in ((resizing, [("a", "w2")]), (moving, [])):
        guards = Guarded(policy=Scripted(first), cooldown=10.0)
        state = guards.decide(snapshot(100.0, [running("a")], NODES), guards.initial()).state
        after = Guarded(policy=Scripted(moving), cooldown=10.0).decide(snapshot(105.0, [running("a")], NODES), state)
        assert moves(after) == then_moves


def test_the_memory_of_actions_ends_with_the_cooldown_or_the_trial() -> None:
    guards = Guarded(policy=Scripted((resize(A, 2.0),)), resize_cooldown=10.0)
    state = guards.decide(snapshot(100.0, [running("a")], NODES), guards.initial()).state
    waiting, ended = running("a", phase=Phase.PENDING), running("a", phase=Phase.SUCCEEDED)
    assert guards.decide(snapshot(105.0, [waiting], NODES), state).state.acted_at == {A: 100.0}
    assert guards.decide(snapshot(120.0, [waiting], NODES), state).state.acted_at == {}
    assert guards.decide(snapshot(105.0, [ended], NODES), state).state.acted_at == {}


def test_no_more_than_the_share_of_the_live_trials_moves_at_once() -> None:
    trials = [running(str(index)) for index in range(8)]
    wanted = [move(one.id, "w2") for one in trials[:4]]
    assert len(moves(guarded(trials, *wanted))) == 2
    assert len(moves(guarded(trials, *wanted, disruption=0.5))) == 4
    moving = replace(trials[7], phase=Phase.MOVING, destination=(NodeName("w2"),))
    decision = guarded([*trials[:7], moving], *wanted)
    assert len(moves(decision)) == 1
    assert "2 trials move already, at most 2 at once" in objections(decision)[0]


def test_one_trial_alone_may_always_move() -> None:
    assert moves(guarded([running("a")], move(A, "w2"))) == [("a", "w2")]


@pytest.mark.parametrize(
    ("progress", "move_refused", "resize_refused"),
    [
        (FRESH, False, False),
        (None, True, False),
        (replace(FRESH, at=-201.0), True, True),
        (replace(FRESH, latest=math.nan), True, True),
    ],
    ids=["fresh", "missing", "stale", "not a number"],
)
def test_nothing_is_done_on_a_stale_metric_and_no_move_without_one(
    progress: Progress | None, *, move_refused: bool, resize_refused: bool
) -> None:
    trials = [running("a", progress=progress)]
    assert bool(guarded(trials, move(A, "w2")).vetoed) is move_refused
    assert bool(guarded(trials, resize(A, 2.0)).vetoed) is resize_refused


def test_a_gang_that_is_not_whole_is_left_alone_and_a_whole_one_needs_room_for_all() -> None:
    partial = running("a", workers=3)
    assert "only 1 of 3 workers" in objections(guarded([partial], move(A, "w2")))[0]
    gang = trial("a", "w1", "w1", "w1", cpu=2.0, progress=FRESH)
    whole = move(A, *["w2"] * 3)
    assert moves(guarded([gang], whole)) == [("a", "w2")]
    assert guarded([gang], whole, nodes=(NODES[0], node("w2", 5.0))).proposals == ()


def test_no_node_gets_more_requests_than_it_has_moves_under_way_included() -> None:
    coming = trial("c", "w1", cpu=4.0, phase=Phase.MOVING, destination=(NodeName("w2"),))
    big = running("a", cpu=4.0), running("b", cpu=4.0)
    decision = guarded([*big, coming], move(A, "w2"), move(B, "w2"), disruption=1.0, nodes=(node("w1", 12.0), NODES[1]))
    assert moves(decision) == [("a", "w2")]
    assert objections(decision) == ["the node has no room for it"]


def test_shrinking_first_makes_room_for_growth() -> None:
    pair = running("a", cpu=4.0), running("b", cpu=4.0)
    assert resizes(guarded([*pair], resize(A, 1.0), resize(B, 7.0))) == {"a": 1.0, "b": 7.0}
    assert resizes(guarded([*pair], resize(B, 7.0), resize(A, 1.0))) == {"a": 1.0}


@pytest.mark.parametrize("phase", [Phase.MOVING, Phase.PENDING, Phase.SUCCEEDED, Phase.FAILED])
def test_only_a_running_trial_is_acted_on(phase: Phase) -> None:
    assert f"the trial is {phase}" in objections(guarded([running("a", phase=phase)], resize(A, 0.5)))


def test_an_unknown_trial_an_unknown_node_and_an_unready_node_are_refused() -> None:
    wanted = (
        Proposal(Resize(TrialId("ghost"), 1.0), ""),
        Proposal(Migrate(A, (NodeName("nowhere"),)), ""),
        move(A, "w2"),
    )
    decision = guarded([running("a")], *wanted, nodes=(NODES[0], node("w2", ready=False)))
    assert decision.proposals == ()
    assert len(decision.vetoed) == 3


def test_a_second_action_on_the_same_trial_is_refused() -> None:
    decision = guarded([running("a")], resize(A, 2.0), move(A, "w2"))
    assert resizes(decision) == {"a": 2.0}
    assert moves(decision) == []


def test_a_waiting_trial_is_placed_where_there_is_room_and_no_other_trial_is() -> None:
    waiting = replace(trial("a", cpu=6.0, phase=Phase.PENDING), gated=True)
    busy = running("b", cpu=4.0)
    placements = [Proposal(Place(A, (NodeName(name),)), "") for name in ("w1", "w2")]
    assert [p.action for p in guarded([waiting, busy], *placements).proposals] == [Place(A, (NodeName("w2"),))]
    assert [p.action for p in guarded([waiting, busy], Proposal(Place(A), "")).proposals] == [Place(A)]
    assert guarded([running("a")], *placements).proposals == ()
    assert guarded([replace(waiting, gated=False)], *placements).proposals == ()


def test_a_state_of_another_policy_is_refused_with_its_beginning() -> None:
    guards = Guarded(policy=Scripted())
    with pytest.raises(PolicyStateError, match=r"'scripted'.*\"trials\""):
        load_state(guards, '{"trials": {}}')
