"""Promote: who goes beyond a rung, who waits, who is stopped, and what policies behind it see."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Decision, Place, Stop, Suspend
from controllers.core.model import Direction, Node, NodeName, Phase, Progress, Trial, TrialId
from controllers.core.policy import dump_state, load_state
from controllers.policies import Ahead, Promote
from controllers.policies.kit.work_left import SweepMeasurements
from controllers.policies.promote.policy import RUNGS, Rungs
from controllers.policies.promote.ranks import PromoteState
from controllers.policies.promote.rungs import Ladder, Level, Losses, losses_of, part_made, with_reached
from controllers.policies.wrappers.stacked import Stacked
from tests.controllers.policies.policy_fakes import node, snapshot, trial

NODES = (node("w1", 2.0), node("w2", 2.0))
STEPS = 100


def at(part: float, value: float) -> Progress:
    """A trial that has made that part of its 100 steps, with that best loss."""
    return Progress(9.0, value, value, round(part * STEPS) - 1, 50.0, steps_total=STEPS)


def running(name: str, part: float = 0.0, value: float = 1.0, **changes: Any) -> Trial:  # noqa: ANN401 - fields of Trial
    return trial(name, "w1", **{"progress": at(part, value) if part else None, **changes})


def suspended(name: str, part: float, value: float) -> Trial:
    return trial(name, phase=Phase.SUSPENDED, gated=True, progress=at(part, value), suspensions=1)


def new(name: str) -> Trial:
    return trial(name, phase=Phase.PENDING, gated=True, attempt=0)


def ended(name: str, value: float) -> Trial:
    return trial(name, phase=Phase.SUCCEEDED, progress=at(1.0, value))


def wanted(
    *trials: Trial,
    nodes: Sequence[Node] = NODES,
    **parameters: Any,  # noqa: ANN401 - of the policy
) -> dict[str, list[str]]:
    """Return who is placed (in order), suspended and stopped."""
    policy = Promote(**parameters)
    decision = policy.decide(snapshot(60.0, trials, nodes), policy.initial())
    found: dict[str, list[str]] = {"placed": [], "suspended": [], "stopped": []}
    names = {Place: "placed", Suspend: "suspended", Stop: "stopped"}
    for proposal in decision.proposals:
        found[names[type(proposal.action)]].append(str(proposal.action.trial))
    return found


def places(decision: Decision[Any]) -> dict[str, str | None]:
    return {one.action.trial: one.action.node for one in decision.proposals if isinstance(one.action, Place)}


def nothing_but(**found: list[str]) -> dict[str, list[str]]:
    return {"placed": [], "suspended": [], "stopped": [], **found}


@pytest.mark.parametrize(
    ("level", "warmup", "rungs"),
    [
        (Level(0.16, 2.0), 0.0, [0.16, 0.32, 0.64]),
        (Level(0.08, 1.5), 0.0, [0.08, 0.12, 0.18, 0.27, 0.405, 0.6075]),
        (Level(0.16, 2.0), 0.3, [0.412, 0.524, 0.748]),
    ],
)
def test_rungs_rise_from_the_first_and_begin_after_the_warm_up(level: Level, warmup: float, rungs: list[float]) -> None:
    assert level.rungs(warmup) == pytest.approx(rungs)


def test_a_trial_has_two_losses_and_a_first_report_that_nothing_has_bettered_is_not_its_best() -> None:
    assert losses_of(Progress(2.0, 0.5, 0.9, 5, 1.0), Direction.MINIMIZE) == Losses(0.5, 0.9)
    assert losses_of(Progress(0.4, 0.4, 0.9, 5, 1.0), Direction.MINIMIZE) == Losses(0.9, 0.9)
    assert losses_of(Progress(0.1, 0.8, 0.7, 5, 1.0), Direction.MAXIMIZE) == Losses(-0.8, -0.7)


def test_a_trial_that_never_tells_its_steps_is_measured_by_those_of_the_others() -> None:
    blind = replace(at(0.5, 1.0), steps_total=None)
    assert part_made(blind, None) is None
    assert part_made(blind, 200.0) == 0.25
    assert part_made(at(0.5, 1.0), 200.0) == 0.5


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.sampled_from([1.5, 2.0, 4.0]))
def test_as_many_go_beyond_a_rung_as_the_rule_says_and_none_that_is_worse_than_one_that_stays(
    values: list[float], eta: float
) -> None:
    losses = {TrialId(f"t{number}"): (Losses(value, value),) for number, value in enumerate(values)}
    ladder = Ladder(losses, [()], eta, {})
    beyond = {name for name in losses if ladder.goes_on(name, 0)}
    best = sorted(values)[: math.floor(len(values) / eta)]
    assert {losses[name][0].best for name in beyond} <= set(best)
    assert max((losses[n][0].best for n in beyond), default=-math.inf) < min(
        (losses[n][0].best for n in losses.keys() - beyond), default=math.inf
    )


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=2, max_size=40, unique=True))
def test_nobody_stays_at_a_rung_who_is_better_in_both_values_than_one_that_goes_on(
    values: list[tuple[float, float]],
) -> None:
    losses = {TrialId(f"t{number}"): (Losses(*value),) for number, value in enumerate(values)}
    ladder = Ladder(losses, [()], 2.0, {})
    beyond = {name for name in losses if ladder.goes_on(name, 0)}
    for stays in losses.keys() - beyond:
        for goes in beyond:
            assert not (
                losses[stays][0].best < losses[goes][0].best and losses[stays][0].newest < losses[goes][0].newest
            )


def test_both_the_best_so_far_and_the_best_of_the_newest_values_go_on() -> None:
    losses = {
        TrialId("was best, overfits"): (Losses(0.1, 0.9),),
        TrialId("improves"): (Losses(0.4, 0.4),),
        TrialId("middling"): (Losses(0.5, 0.5),),
        TrialId("bad"): (Losses(0.9, 0.95),),
    }
    ladder = Ladder(losses, [()], 2.0, {})
    assert {str(name) for name in losses if ladder.goes_on(name, 0)} == {"was best, overfits", "improves"}


def test_what_a_trial_had_reached_at_a_rung_stays_though_it_gets_better_later() -> None:
    first = with_reached(running("a", 0.2, 1.0), (), (0.16, 0.32, 0.64), None)
    assert first == (Losses(1.0, 1.0),)
    later = with_reached(running("a", 0.7, 0.1), first, (0.16, 0.32, 0.64), None)
    assert later == (Losses(1.0, 1.0), Losses(0.1, 0.1), Losses(0.1, 0.1))


def test_new_trials_start_as_far_as_there_is_room() -> None:
    assert wanted(*map(new, "abcde")) == nothing_but(placed=["a", "b", "c", "d"])


def test_a_trial_that_may_go_on_goes_before_new_ones_and_the_one_that_has_come_further_first() -> None:
    on = [suspended("far", 0.4, 0.1), suspended("near", 0.2, 0.2)]
    worse = [ended(f"e{number}", 5.0) for number in range(4)]
    assert wanted(new("a"), *on, *worse)["placed"] == ["far", "near", "a"]


def test_at_the_first_level_a_trial_waits_only_while_another_that_goes_first_has_no_room() -> None:
    full = [running("good", 0.2, 0.1), running("bad", 0.2, 0.9), running("worse", 0.2, 1.0), running("x")]
    four = [replace(one, nodes=(NodeName(name),)) for one, name in zip(full, ("w1", "w1", "w2", "w2"), strict=True)]
    assert wanted(*four) == nothing_but()
    assert wanted(*four, new("n")) == nothing_but(suspended=["worse"])
    assert wanted(*four, new("n"), new("o"), new("p")) == nothing_but(suspended=["worse", "bad"])


def test_at_the_first_level_whoever_waits_goes_on_once_nobody_goes_before_it() -> None:
    assert wanted(suspended("bad", 0.2, 1.0), suspended("good", 0.2, 0.1)) == nothing_but(placed=["good", "bad"])


@pytest.mark.parametrize("rungs", ["best", "fast"])
def test_by_fixed_rungs_a_trial_that_is_not_among_the_best_waits_at_its_rung(rungs: Rungs) -> None:
    first = RUNGS[rungs].first
    trials = [running("good", first, 0.1), running("bad", first, 0.9), running("young", 0.05)]
    assert wanted(*trials, rungs=rungs) == nothing_but(suspended=["bad"])


@pytest.mark.parametrize("rungs", ["best", "fast"])
def test_who_still_waits_is_stopped_once_the_best_is_known(rungs: Rungs) -> None:
    waits, over = suspended("bad", 0.2, 0.9), [ended(f"good{number}", 0.1) for number in range(4)]
    assert wanted(*over, running("runs"), waits, nodes=NODES[:1], rungs=rungs) == nothing_but()
    assert wanted(*over, waits, rungs=rungs) == nothing_but(stopped=["bad"])


def test_four_go_beyond_a_rung_at_least_once_nobody_can_come_to_it_any_more() -> None:
    waiting = [suspended(name, 0.2, loss) for name, loss in zip("abc", (3.0, 2.0, 1.0), strict=True)]
    over = [ended(f"good{number}", 0.1) for number in range(2)]
    assert wanted(*over, *waiting, running("new", 0.05), nodes=NODES[:1], rungs="best") == nothing_but()
    assert wanted(*over, *waiting, rungs="best") == nothing_but(placed=["c", "b"])
    leaving = replace(suspended("best", 0.2, 0.5), phase=Phase.SUSPENDING)
    assert wanted(*over, *waiting, leaving, nodes=(), rungs="best") == nothing_but()
    failed = [trial(f"f{number}", phase=Phase.FAILED, progress=at(0.7, 0.1)) for number in range(4)]
    assert wanted(*failed, *waiting, rungs="best")["placed"] == ["c", "b", "a"]


@pytest.mark.parametrize("rungs", ["best", "fast"])
def test_somebody_always_comes_to_the_end(rungs: Rungs) -> None:
    assert wanted(suspended("a", 0.2, 0.9), rungs=rungs) == nothing_but(placed=["a"])
    assert wanted(running("a", 0.2, 0.9), rungs=rungs) == nothing_but()
    trials = [suspended("a", 0.2, 0.9), suspended("b", 0.7, 0.5), trial("f", phase=Phase.FAILED, progress=at(0.7, 0.1))]
    assert wanted(*trials, rungs=rungs)["placed"]


def test_a_state_of_an_older_version_which_kept_one_loss_of_each_rung_is_read() -> None:
    policy = Promote(rungs="best")
    kept = {"losses": {"a": [0.5, 0.25]}, "passed": {"a": 1}, "ended": {"": [[1.0], [], []]}}
    state = load_state(policy, json.dumps(kept))
    assert state.losses == {"a": (Losses(0.5, 0.5), Losses(0.25, 0.25))}
    assert state.ended == {"": ((Losses(1.0, 1.0),), (), ())}
    assert load_state(policy, dump_state(policy, state)) == state


@pytest.mark.parametrize("rungs", [None, "best", "fast"])
def test_a_trial_that_diverged_is_stopped_wherever_it_is(rungs: Rungs | None) -> None:
    trials = [running("a", diverged=True), replace(suspended("b", 0.2, 1.0), diverged=True), running("c")]
    assert wanted(*trials, rungs=rungs)["stopped"] == ["a", "b"]


def test_a_trial_that_was_let_past_a_rung_stays_so_after_a_restart_though_better_ones_come() -> None:
    policy = Promote(rungs="best")
    first = policy.decide(snapshot(60.0, [running("a", 0.2, 0.5), running("b", 0.2, 0.9)], NODES), policy.initial())
    kept = load_state(policy, dump_state(policy, first.state))
    better = [running(name, 0.2, 0.1) for name in "cdef"]
    later = policy.decide(snapshot(70.0, [running("a", 0.25, 0.5), suspended("b", 0.2, 0.9), *better], NODES), kept)
    assert TrialId("a") not in {proposal.action.trial for proposal in later.proposals}


@pytest.mark.parametrize("rungs", [None, "best"])
def test_trials_are_compared_with_those_of_their_own_sweep_only(rungs: Rungs | None) -> None:
    low = [running("a", 0.2, 0.1, sweep="low"), running("b", 0.2, 0.9, sweep="low")]
    high = [running("c", 0.2, 100.0, sweep="high"), running("d", 0.2, 900.0, sweep="high")]
    low, high = [*low, running("e", sweep="low")], [*high, running("f", sweep="high")]
    waiting = [new(f"n{number}") for number in range(4)]
    assert set(wanted(*low, *high, *waiting, rungs=rungs)["suspended"]) == {"b", "d"}


def test_a_sweep_ends_though_another_of_the_workflow_goes_on() -> None:
    best = [replace(ended(f"best{number}", 0.1), sweep="low") for number in range(4)]
    over = [*best, replace(suspended("late", 0.2, 0.9), sweep="low")]
    assert wanted(*over, running("a", 0.1, sweep="high"), rungs="best") == nothing_but(stopped=["late"])


def test_what_the_ended_trials_of_a_sweep_came_to_is_not_forgotten_and_not_counted_for_another() -> None:
    policy = Promote()
    ends = [replace(ended(name, 0.1), sweep="low") for name in "pqrs"]
    first = policy.decide(snapshot(60.0, [*ends, running("a"), running("b", sweep="low")], NODES), policy.initial())
    kept = load_state(policy, dump_state(policy, first.state))
    both = [running("a", 0.2, 0.5), running("b", 0.2, 0.5, sweep="low")]
    later = policy.decide(snapshot(70.0, [*ends, *both], NODES), kept)
    outlooks = {name: later.assessments[TrialId(name)].outlook for name in "ab"}
    assert outlooks["a"].startswith("waits at its rung: better than 100 % of those")
    assert outlooks["b"].startswith("waits at its rung: better than 20 % of those")


@pytest.mark.parametrize("rungs", ["best", "fast"])
def test_who_waits_trains_on_where_nobody_else_can_use_the_cores(rungs: Rungs) -> None:
    policy, first = Promote(rungs=rungs), RUNGS[rungs].first
    nodes = [*NODES, node("w3", 2.0), node("w4", 2.0)]
    waiting = [suspended(name, first, loss) for name, loss in (("worst", 0.9), ("worse", 0.8), ("good", 0.1))]
    waiting += [] if rungs == "best" else [suspended("fair", first, 0.2)]
    decision = policy.decide(snapshot(60.0, [running("runs"), *waiting], nodes), policy.initial())
    assert places(decision) == {one.id: None for one in waiting[2:]}  # first those that go on
    on = [running(str(one.id), first, 0.1, nodes=(NodeName("w1"),)) for one in waiting[2:]]
    later = policy.decide(snapshot(65.0, [running("runs"), *on, *waiting[:2]], nodes), decision.state)
    # All that go on may come to use two cores each, though they share a node now. Two cores at least are left.
    assert places(later) == {"worse": "w2", "worst": "w2"}


@pytest.mark.parametrize("paused", [[], [trial("paused", phase=Phase.PENDING, gated=True, withheld=True)]])
def test_cores_are_idle_beside_a_trial_that_was_seen_to_be_unable_to_use_them_and_one_that_is_paused(
    paused: list[Trial],
) -> None:
    policy = Promote(rungs="best")
    state, waits = policy.initial(), suspended("waits", 0.2, 0.9)
    for second, found in ((10.0, {}), (20.0, {"waits": "w1"})):
        told = replace(at(0.1 + second / 1000, 0.5), at=second, cpu_seconds=second)  # one core of two
        trials = [running("runs", progress=told), waits, *paused]
        decision = policy.decide(snapshot(second, trials, NODES[:1]), state)
        state = load_state(policy, dump_state(policy, decision.state))
        assert places(decision) == found


def test_who_uses_idle_cores_stays_until_another_that_goes_on_needs_the_place() -> None:
    w2, over = (NodeName("w2"),), ended("good", 0.1)
    bad, worse = running("bad", 0.2, 0.8, nodes=w2), running("worse", 0.2, 0.9, nodes=w2)
    on = [running(f"on{number}", 0.05) for number in range(2)]
    nodes = [*NODES, *(node(name, 2.0, only_for=frozenset({"gpu"})) for name in ("w3", "w4"))]
    assert wanted(over, *on, bad, worse, nodes=nodes, rungs="best") == nothing_but()
    assert wanted(over, *on, bad, worse, new("n"), nodes=nodes, rungs="best") == nothing_but(suspended=["worse"])
    leaving = replace(worse, phase=Phase.SUSPENDING)
    assert wanted(over, *on, bad, leaving, new("n"), nodes=nodes, rungs="best") == nothing_but()
    two = [new("n"), new("m")]
    assert wanted(over, *on, bad, leaving, *two, nodes=nodes, rungs="best") == nothing_but(suspended=["bad"])


def test_who_starts_on_idle_cores_drives_nobody_away_who_uses_such_already() -> None:
    w2, over = (NodeName("w2"),), ended("good", 0.1)
    on, bad = running("on", 0.05), running("bad", 0.2, 0.8, nodes=w2)
    starting = replace(suspended("worse", 0.2, 0.9), gated=False)
    for phase, where in ((Phase.SUSPENDED, ()), (Phase.PENDING, w2)):
        trials = over, on, bad, replace(starting, phase=phase, nodes=where)
        assert wanted(*trials, rungs="best") == nothing_but()


def test_who_has_just_started_on_idle_cores_stays_though_others_seem_able_to_use_them_now() -> None:
    policy, bad = Promote(rungs="best"), running("bad", 0.2, 0.8, nodes=(NodeName("w2"),))
    trials = [ended("good", 0.1), running("on", 0.05), running("also", 0.05, nodes=(NodeName("w2"),)), bad]
    for starts, gone in (((4.0,), 50.0), ((), 10.0)):
        state = replace(policy.initial(), measured=SweepMeasurements(starts=starts))
        for second in (10.0, 30.0, 49.0, 51.0):
            decision = policy.decide(snapshot(second, trials, NODES), state)
            state = decision.state
            suspended = [one.action.trial for one in decision.proposals if isinstance(one.action, Suspend)]
            assert suspended == (["bad"] if second >= gone else [])
        crowded = policy.decide(snapshot(12.0, [*trials, new("n"), new("m"), new("o")], NODES), policy.initial())
        assert Suspend(bad.id) in [one.action for one in crowded.proposals]


def test_a_gang_does_not_stay_on_idle_cores_however_new_it_is() -> None:
    policy, both = Promote(rungs="best"), (NodeName("w1"), NodeName("w2"))
    state = replace(policy.initial(), measured=SweepMeasurements(starts=(4.0,)))
    gang = running("gang", 0.2, 0.8, nodes=both, workers=2, min_workers=2, max_workers=2)
    decision = policy.decide(snapshot(10.0, [ended("good", 0.1), running("on", 0.05), gang], NODES), state)
    assert [one.action for one in decision.proposals] == [Suspend(gang.id)]


@pytest.mark.parametrize(("rungs", "where"), [("best", frozenset({"w2"})), ("fast", frozenset({"w2"})), (None, None)])
def test_what_comes_behind_moves_nobody_from_idle_cores_to_where_those_that_go_first_train(
    rungs: Rungs | None, where: frozenset[str] | None
) -> None:
    bad = running("bad", 0.2, 0.8, nodes=(NodeName("w2"),))
    seen = snapshot(60.0, [ended("good", 0.1), running("on", 0.05), bad], NODES)
    decision = Promote(rungs=rungs).decide(seen, PromoteState())
    assert decision.narrowed is not None
    assert {str(one.id): one.may_use for one in decision.narrowed.unended} == {"on": None, "bad": where}


def test_how_far_a_trial_came_on_idle_cores_lets_nobody_else_past() -> None:
    losses = {
        TrialId("good"): (Losses(0.1, 0.1), Losses(0.1, 0.1)),
        TrialId("bad"): (Losses(0.9, 0.9), Losses(0.9, 0.9)),
    }
    assert Ladder(losses, [(), ()], 2.0, {}).passed == {"good": 1, "bad": 0}
    assert Ladder(losses, [(), ()], 2.0, {TrialId("bad"): 1}).passed == {"good": 2, "bad": 1}


def test_a_trial_that_came_to_its_end_on_idle_cores_counts_at_the_rung_at_which_it_waited_only() -> None:
    policy = Promote(rungs="best")
    trials = [running("good", 0.2, 0.1), running("bad", 0.7, 0.9), running("new", 0.05)]
    first = policy.decide(snapshot(60.0, trials, NODES), policy.initial())
    over = [trials[0], ended("bad", 0.9), trials[2]]
    later = policy.decide(snapshot(65.0, over, NODES), first.state)
    assert later.state.ended == {"": ((Losses(0.9, 0.9),), (), ())}


def test_a_trial_that_was_suspended_as_often_as_the_sweep_has_attempts_for_goes_on() -> None:
    trials = [running("good", 0.2, 0.1), running("bad", 0.2, 0.9, suspensions=5), running("young", 0.05)]
    assert wanted(*trials, rungs="best") == nothing_but(suspended=["bad"])
    assert wanted(trials[0], replace(trials[1], suspensions=6), trials[2], rungs="best") == nothing_but()


def test_policies_behind_it_see_only_who_shall_start_and_the_work_up_to_the_next_rung() -> None:
    trials = [running("a", 0.2, 0.1), running("b", 0.25, 0.2), new("n"), *(new(f"o{k}") for k in range(9))]
    policy = Promote()
    seen = policy.decide(snapshot(60.0, trials, NODES), policy.initial()).narrowed
    assert seen is not None
    waits = {one.id for one in seen.unended if one.waits}
    assert len(waits) == 2
    totals = {one.id: one.progress.steps_total for one in seen.unended if one.progress}
    assert totals == {"a": 32, "b": 100}


def test_beside_ahead_it_says_who_starts_and_ahead_says_where() -> None:
    stack = Stacked(policies=(Promote(), Ahead()))
    trials = [new(f"t{number}") for number in range(9)]
    decision = stack.decide(snapshot(0.0, trials, NODES), stack.initial())
    places = [one.action for one in decision.proposals if isinstance(one.action, Place)]
    assert len(places) == 4
    assert {place.node for place in places} == {"w1", "w2"}
