from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from controllers.core.actions import Decision
from controllers.core.model import Category, Node, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies import SpeCon
from controllers.policies.specon.categories import SpeConMemo, SpeConState
from tests.controllers.policies.policy_fakes import moves, node, progress, run, snapshot, trial

A = TrialId("a")
DECLINING = (100.0, 50.0, 49.9, 49.85, 49.83)
"""A first gain of 1, then 0.002, 0.001 and 0.0004 of the range: three declining ones below alpha."""
NODES = (node("w1"), node("w2"))


def busy(name: str, where: str, now: float) -> Trial:
    """A trial whose loss falls by 6 every interval."""
    return trial(name, where, progress=progress(100 - now / 5, now))


def story(
    values: tuple[float, ...], nodes: tuple[Node, ...] = NODES, others: tuple[str, ...] = ("b", "c")
) -> list[Snapshot]:
    """One snapshot per interval in which ``a`` reports the next of ``values`` beside others that grow."""
    return [
        snapshot(now, [trial("a", "w1", progress=progress(value, now)), *(busy(o, "w1", now) for o in others)], nodes)
        for now, value in zip(range(0, 30 * len(values), 30), values, strict=True)
    ]


def categories(decisions: list[Decision[Any]]) -> list[Category | None]:
    return [decision.assessments[A].category for decision in decisions]


def test_three_declining_gains_in_a_row_end_in_a_move() -> None:
    decisions = run(SpeCon(), story(DECLINING))
    assert categories(decisions) == [
        Category.PROGRESSING,
        Category.PROGRESSING,
        Category.WATCHING,
        Category.CONVERGED,
        Category.CONVERGED,
    ]
    assert [moves(decision) for decision in decisions] == [[], [], [], [], [("a", "w2")]]


def test_the_reason_names_growth_alpha_and_scores() -> None:
    (proposal,) = run(SpeCon(), story(DECLINING))[-1].proposals
    for part in ("0.000399", "alpha 0.01", "w2 scores 0", "w1 5"):
        assert part in proposal.reason


def test_a_small_gain_that_is_no_smaller_than_the_last_changes_nothing() -> None:
    steady = (100.0, 50.0, 49.9, 49.79, 49.67, 49.54)
    assert categories(run(SpeCon(), story(steady)))[2:] == [Category.WATCHING] * 4


def test_a_trial_that_stands_still_converges_and_moves_like_one_that_slows() -> None:
    still = (100.0, 50.0, 50.1, 50.1, 50.2)
    decisions = run(SpeCon(), story(still))
    assert categories(decisions)[2:] == [Category.WATCHING, Category.CONVERGED, Category.CONVERGED]
    assert moves(decisions[4]) == [("a", "w2")]


def test_a_gain_at_alpha_counts_as_progressing_again() -> None:
    # All of the range is 64, so that the last gain is exactly 1/64.
    back = (100.0, 37.0, 36.9999, 36.9998, 36.0)
    last = run(SpeCon(alpha=(36.9998 - 36.0) / 64), story(back))[-1]
    assert last.assessments[A].category is Category.PROGRESSING


def test_no_move_is_asked_for_where_fewer_than_two_others_still_grow() -> None:
    decisions = run(SpeCon(rebalance_when="migrated"), story(DECLINING, others=("b",)))
    assert decisions[-1].assessments[A].category is Category.CONVERGED
    assert moves(decisions[-1]) == []


def test_asked_early_it_keeps_everything_and_names_the_same_wake_up() -> None:
    first, second = run(SpeCon(), [story(DECLINING)[0], replace(story(DECLINING)[1], now=29.0)])
    assert second.state == first.state
    assert second.wake_at == first.wake_at == 30.0


def test_a_late_call_never_shortens_the_interval_after_it() -> None:
    late = [replace(seen, now=now) for seen, now in zip(story(DECLINING), (0.0, 55.0, 60.0), strict=False)]
    decisions = run(SpeCon(), late)
    assert decisions[1].wake_at == decisions[2].wake_at == 85.0
    assert decisions[2].state == decisions[1].state


def unreported(now: float) -> Iterator[Snapshot]:
    """Four intervals that decline, then one in which ``a`` has the given progress."""
    *before, last = story(DECLINING)
    yield from before
    same = before[-1].trials[0].progress
    assert same is not None
    late = replace(progress(49.83, now), step=99)
    for known in (None, same, late):
        yield replace(last, trials=(replace(last.trials[0], progress=known), *last.trials[1:]))


def test_a_missing_an_old_and_a_repeated_report_leave_category_and_remembered_value() -> None:
    decisions = run(SpeCon(), unreported(now=120.0 - 61.0))
    assert all(decision.proposals == () for decision in decisions)
    assert {decision.state.trials[A] for decision in decisions[-3:]} == {decisions[3].state.trials[A]}


def test_without_trials_only_a_change_needs_a_new_decision() -> None:
    assert run(SpeCon(), [snapshot(0.0, [], NODES)])[0].wake_at is None


def moving(decision: Decision[Any], now: float, **changes: Any) -> Snapshot:  # noqa: ANN401 - fields of Trial
    """What follows the move of ``a`` that ``decision`` asks for."""
    assert moves(decision) == [("a", "w2")]
    last = story(DECLINING)[-1]
    return replace(last, now=now, trials=(replace(last.trials[0], **changes), *last.trials[1:]))


def answered(**changes: Any) -> SpeConMemo:  # noqa: ANN401 - fields of Trial
    asked = run(SpeCon(), story(DECLINING))[-1]
    memo: SpeConMemo = SpeCon().decide(moving(asked, 125.0, **changes), asked.state).state.trials[A]
    return memo


W2 = (NodeName("w2"),)


def test_a_trial_is_migrated_only_once_a_later_attempt_runs_at_the_destination() -> None:
    assert answered(nodes=W2, attempt=2).migrated_at == 125.0


@pytest.mark.parametrize(
    "changes",
    [{"attempt": 1}, {"attempt": 2}, {"nodes": W2, "attempt": 1}, {"nodes": (NodeName("w3"),), "attempt": 2}],
    ids=["refused", "failed and back", "same attempt", "somewhere else"],
)
def test_a_move_that_did_not_come_about_may_be_asked_for_again(changes: dict[str, Any]) -> None:
    memo = answered(**changes)
    assert not memo.migrated
    assert memo.pending is None


@pytest.mark.parametrize("phase", [Phase.MOVING, Phase.PENDING])
def test_a_move_under_way_stays_open(phase: Phase) -> None:
    memo = answered(phase=phase, nodes=() if phase is Phase.PENDING else (NodeName("w1"),))
    assert memo.pending is not None
    assert not memo.migrated


def test_a_controller_that_begins_in_mid_move_counts_the_trial_where_it_goes() -> None:
    on_its_way = replace(trial("a", phase=Phase.MOVING), nodes=(), destination=(NodeName("w2"),))
    beside = trial("b", "w1")
    seen = snapshot(100.0, [on_its_way, beside], [node("w1"), node("w2")])
    decision = SpeCon().decide(seen, SpeCon().initial())
    assert decision.assessments.keys() == {"a", "b"}
    assert moves(decision) == []


def test_a_trial_that_has_ended_is_forgotten() -> None:
    asked = run(SpeCon(), story(DECLINING))[-1]
    over = moving(asked, 125.0, phase=Phase.SUCCEEDED, nodes=())
    assert A not in SpeCon().decide(over, asked.state).state.trials


def test_a_migrated_trial_is_never_categorised_or_moved_for_convergence_again() -> None:
    asked = run(SpeCon(), story(DECLINING))[-1]
    state = SpeCon().decide(moving(asked, 125.0, nodes=W2, attempt=2), asked.state).state
    last = story(DECLINING)[-1]
    for now in (150.0, 180.0, 210.0, 240.0):
        here = trial("a", "w2", attempt=2, progress=progress(49.83 - 0.001 / now, now))
        seen = snapshot(
            now, [here, *(replace(o, progress=progress(100 - now / 5, now)) for o in last.trials[1:])], NODES
        )
        decision = SpeCon().decide(seen, state)
        assert moves(decision) == []
        state = decision.state


def converged(name: str, now: float = 0.0, *, migrated: bool = True) -> tuple[TrialId, SpeConMemo]:
    return TrialId(name), SpeConMemo(Category.CONVERGED, converged_at=now, migrated_at=now if migrated else None)


def test_a_converged_gang_moves_as_any_trial_once_all_its_workers_run() -> None:
    alone = story(DECLINING)
    part = [replace(seen, trials=(replace(seen.trials[0], workers=2), *seen.trials[1:])) for seen in alone]
    assert moves(run(SpeCon(), part)[-1]) == []
    whole = [
        replace(seen, trials=(replace(seen.trials[0], workers=2, nodes=seen.trials[0].nodes * 2), *seen.trials[1:]))
        for seen in alone
    ]
    assert moves(run(SpeCon(), whole)[-1]) == moves(run(SpeCon(), alone)[-1]) != []


def test_requests_are_served_one_after_another_each_counting_the_moves_before_it() -> None:
    nodes = (node("w1"), node("w2"), node("w3"))
    seen = [
        snapshot(
            now,
            [
                *(trial(name, "w1", progress=progress(value, now)) for name in ("a", "b")),
                *(busy(name, "w1", now) for name in ("c", "d")),
            ],
            nodes,
        )
        for now, value in zip(range(0, 150, 30), DECLINING, strict=True)
    ]
    assert moves(run(SpeCon(), seen)[-1]) == [("a", "w2"), ("b", "w3")]


def test_states_of_four_trials_on_two_nodes_of_which_one_falls_idle_are_evened_out() -> None:
    """Thesis ch. 5.2.3: c1 and c2 on W1 complete before c3 and c4 on W2."""
    state = SpeConState(due_at=30.0, trials=dict(converged(name) for name in ("c1", "c2", "c3", "c4")))
    ended = [trial(name, phase=Phase.SUCCEEDED) for name in ("c1", "c2")]
    left = [trial(name, "w2") for name in ("c3", "c4")]
    assert moves(SpeCon().decide(snapshot(10.0, [*ended, *left], NODES), state)) == [("c3", "w1")]


def four_trials(now: float, value: float, *, over: bool = False) -> Snapshot:
    left = [trial(name, "w2", progress=progress(value, now)) for name in ("c3", "c4")]
    first = [trial(name, "w1", progress=progress(value, now)) for name in ("c1", "c2")]
    gone = [replace(ended, phase=Phase.SUCCEEDED, nodes=()) for ended in first]
    return snapshot(now, [*(gone if over else first), *left], NODES)


def test_the_example_of_the_thesis_comes_about_from_the_first_report_on() -> None:
    seen = [four_trials(now, value) for now, value in zip((0.0, 30.0, 60.0, 90.0), DECLINING, strict=False)]
    decisions = run(SpeCon(), [*seen, four_trials(100.0, 49.85, over=True)])
    assert [moves(decision) for decision in decisions] == [[], [], [], [], [("c3", "w1")]]


def test_the_listing_of_the_thesis_taken_literally_waits_for_marks_that_never_come() -> None:
    seen = [four_trials(now, value) for now, value in zip((0.0, 30.0, 60.0, 90.0), DECLINING, strict=False)]
    decisions = run(SpeCon(rebalance_when="migrated"), [*seen, four_trials(100.0, 49.85, over=True)])
    assert all(moves(decision) == [] for decision in decisions)


def test_nothing_is_evened_out_while_any_live_trial_still_grows() -> None:
    state = SpeConState(trials=dict([converged("a"), converged("b"), (TrialId("c"), SpeConMemo())]))
    seen = snapshot(0.0, [trial(name, "w2") for name in ("a", "b", "c")], NODES)
    assert moves(SpeCon().decide(seen, state)) == []


def test_a_trial_is_rebalanced_once_its_later_attempt_runs_there_and_then_never_again() -> None:
    state = SpeConState(trials=dict([converged("a"), converged("b")]))
    both = [trial(name, "w2") for name in ("a", "b")]
    asked = SpeCon().decide(snapshot(0.0, both, NODES), state)
    assert moves(asked) == [("a", "w1")]
    there = [trial("a", "w1", attempt=2), both[1]]
    done = SpeCon().decide(snapshot(30.0, there, NODES), asked.state)
    assert done.state.trials[A].rebalanced
    again = SpeCon().decide(snapshot(60.0, [trial("a", "w2", attempt=3), trial("b", "w2")], NODES), done.state)
    assert moves(again) == [("b", "w1")]
