from dataclasses import replace

import pytest

from controllers.core.actions import Decision, Migrate, Place, Resize
from controllers.core.model import Category, NodeName, Phase, Trial, TrialId
from controllers.core.progress import Mark
from controllers.policies import FlowCon, FlowCon2
from controllers.policies.flowcon.measuring import FlowConMemo, FlowConState
from controllers.policies.flowcon2 import FlowCon2State, reliefs, weight_per_core
from controllers.policies.kit.asked_moves import AskedMoves
from controllers.policies.kit.occupancy import Occupancy
from tests.controllers.policies.policy_fakes import moves, node, progress, resizes, run, snapshot, trial

LOOKS = (0.0, 20.0, 40.0, 60.0)
NEW, WATCHING, COMPLETING = Category.PROGRESSING, Category.WATCHING, Category.CONVERGED


def memo(category: Category, efficiency: float | None = 0.1) -> FlowConMemo:
    return FlowConMemo(category, Mark(1.0, 1, 0.0, 0.0), 0.1, efficiency, 0.5)


def waiting(name: str) -> Trial:
    return trial(name, phase=Phase.PENDING, gated=True, attempt=0)


def remembering(**memos: FlowConMemo) -> FlowCon2State:
    return FlowCon2State(FlowConState({TrialId(name): one for name, one in memos.items()}), due_at=1e9)


def places(decision: Decision[FlowCon2State]) -> dict[str, str | None]:
    actions = [proposal.action for proposal in decision.proposals]
    return {action.trial: action.node for action in actions if isinstance(action, Place)}


def relieved(
    nodes: dict[str, float], busy: float, memos: dict[str, tuple[str, FlowConMemo]], spent: AskedMoves | None = None
) -> list[tuple[str, str]]:
    """Return the moves for trials that are given as (node, memo) on nodes of so many cores."""
    trials = [trial(name, where) for name, (where, _) in memos.items()]
    seen = snapshot(0.0, trials, [node(name, cpu, cpu_used=cpu * busy) for name, cpu in nodes.items()])
    known = {TrialId(name): one for name, (_, one) in memos.items()}
    found = reliefs(Occupancy.of(seen), known, spent or AskedMoves())
    actions = [proposal.action for proposal in found]
    return [(action.trial, action.node) for action in actions if isinstance(action, Migrate)]


def test_the_weight_of_a_node_is_the_sum_of_its_categories_per_core() -> None:
    memos = {TrialId("a"): memo(NEW), TrialId("b"): memo(WATCHING), TrialId("c"): memo(COMPLETING)}
    trials = [trial(name, "x") for name in ("a", "b", "c", "unknown")]
    assert weight_per_core(node("x", 4.0), trials, memos) == pytest.approx((2 + 1.5 + 1 + 2) / 4)


def test_a_new_trial_goes_where_least_still_grows() -> None:
    there = [trial("a", "x"), trial("b", "y"), trial("c", "y"), waiting("d")]
    state = remembering(a=memo(NEW), b=memo(COMPLETING), c=memo(COMPLETING))
    assert places(FlowCon2().decide(snapshot(0.0, there, [node("x"), node("y")]), state)) == {"d": "x"}
    third = replace(state, shares=FlowConState({**state.shares.trials, TrialId("c"): memo(WATCHING)}))
    assert places(FlowCon2().decide(snapshot(0.0, there, [node("x"), node("y", 200.0)]), third)) == {"d": "y"}


def test_of_empty_nodes_the_largest_comes_first() -> None:
    nodes = [node("large", 32.0), node("small", 8.0)]
    assert places(FlowCon2().decide(snapshot(0.0, [waiting("a")], nodes), FlowCon2State())) == {"a": "large"}


def test_trials_placed_together_count_for_one_another_and_until_they_start() -> None:
    nodes = [node("x"), node("y")]
    first = FlowCon2().decide(snapshot(0.0, [waiting("a"), waiting("b")], nodes), FlowCon2State())
    assert places(first) == {"a": "x", "b": "y"}
    starting = [trial("a", phase=Phase.PENDING, attempt=0), trial("b", "y"), waiting("c")]
    assert places(FlowCon2().decide(snapshot(1.0, starting, nodes), first.state)) == {"c": "x"}


def test_the_least_efficient_trial_leaves_the_new_ones_for_a_node_where_all_are_completing() -> None:
    story = {"fast": ("x", memo(NEW, 0.9)), "slow": ("x", memo(WATCHING, 0.1)), "done": ("y", memo(COMPLETING))}
    assert relieved({"x": 4.0, "y": 4.0}, 1.0, story) == [("slow", "y")]


def test_without_new_trials_to_make_room_for_only_an_idle_node_takes_one() -> None:
    story = {"a": ("x", memo(COMPLETING, 0.2)), "b": ("x", memo(COMPLETING, 0.1)), "c": ("x", memo(WATCHING, 0.3))}
    assert relieved({"x": 4.0, "y": 4.0}, 1.0, {**story, "d": ("y", memo(COMPLETING))}) == []
    assert relieved({"x": 4.0, "y": 4.0}, 1.0, story) == [("b", "y")]


def test_nobody_moves_where_the_cpu_is_not_busy_or_a_trial_is_alone() -> None:
    story = {"fast": ("x", memo(NEW, 0.9)), "slow": ("x", memo(WATCHING, 0.1))}
    assert relieved({"x": 4.0, "y": 4.0}, 0.5, story) == []
    assert relieved({"x": 4.0, "y": 4.0}, 1.0, {"fast": ("x", memo(NEW))}) == []


def test_a_move_must_leave_a_heavier_node_than_it_makes() -> None:
    story = {"fast": ("x", memo(NEW, 0.9)), "slow": ("x", memo(WATCHING, 0.1))}
    assert relieved({"x": 16.0, "y": 4.0}, 1.0, story) == []
    assert relieved({"x": 16.0, "y": 8.0}, 1.0, story) == [("slow", "y")]


def test_a_trial_that_was_moved_or_never_measured_stays() -> None:
    story = {"fast": ("x", memo(NEW, 0.9)), "slow": ("x", memo(WATCHING, 0.1))}
    spent = AskedMoves(arrived={TrialId("slow"): 1})
    assert relieved({"x": 4.0, "y": 4.0}, 1.0, story, spent) == [("fast", "y")]
    unmeasured = {name: (where, replace(one, efficiency=None)) for name, (where, one) in story.items()}
    assert relieved({"x": 4.0, "y": 4.0}, 1.0, unmeasured) == []


def two_on_one_node(now: float) -> list[Trial]:
    return [
        trial("a", "x", progress=progress(100.0 - now, now, cpu=now)),
        trial("b", "x", progress=progress(100.0 - min(now, 20.0) / 2, now, cpu=now)),
    ]


def test_shares_are_those_of_flowcon() -> None:
    story = [snapshot(now, two_on_one_node(now), [node("x", 4.0)]) for now in LOOKS]
    ours, theirs = run(FlowCon2(), story)[-1], run(FlowCon(), story)[-1]
    assert resizes(ours) == resizes(theirs) != {}
    assert ours.assessments == theirs.assessments


def test_a_trial_that_moves_is_not_resized_too() -> None:
    story = [
        snapshot(t, two_on_one_node(t), [node("x", 4.0, cpu_used=4.0), node("y", 4.0)]) for t in (0.0, 20.0, 40.0, 60.0)
    ]
    last = run(FlowCon2(), story)[-1]
    assert moves(last) == [("b", "y")]
    assert "b" not in resizes(last)
    assert isinstance(last.vetoed[0][0].action, Resize)


def test_a_move_and_its_target_are_remembered_until_answered() -> None:
    story = [
        snapshot(t, two_on_one_node(t), [node("x", 4.0, cpu_used=4.0), node("y", 4.0)]) for t in (0.0, 20.0, 40.0, 60.0)
    ]
    state = run(FlowCon2(), story)[-1].state
    assert state.moves.asked[TrialId("b")].destination == "y"
    arrived = [trial("a", "x"), trial("b", "y", attempt=2)]
    after = FlowCon2().decide(snapshot(50.0, arrived, [node("x"), node("y")]), state).state
    assert after.moves.arrived == {"b": 1}
    assert NodeName("y") not in after.starting.values()
