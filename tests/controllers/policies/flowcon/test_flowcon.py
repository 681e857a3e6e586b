from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Resize
from controllers.core.model import Category, Node, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.policies import FlowCon
from controllers.policies.flowcon.measuring import FlowConMemo, FlowConState
from controllers.policies.flowcon.policy import fair_shares, limits
from controllers.policies.kit.shares import within_budget
from tests.controllers.policies.policy_fakes import node, progress, resizes, run, snapshot, trial

A, B = TrialId("a"), TrialId("b")
P, W, C = Category.PROGRESSING, Category.WATCHING, Category.CONVERGED
MACHINE = (node("m", 8.0),)


def seen(now: float, *trials: Trial, nodes: tuple[Node, ...] = MACHINE) -> Snapshot:
    return snapshot(now, trials, nodes)


def training(name: str, value: float, now: float, **changes: Any) -> Trial:  # noqa: ANN401 - fields of Trial
    """A trial on ``m`` that has used a core since the start."""
    return trial(name, "m", **{"progress": progress(value, now, cpu=now), **changes})


SLOWING = (100.0, 50.0, 49.9, 49.85)
"""A peak of growth, then two gains far below 5 % of it."""


def slowing(**changes: Any) -> list[Snapshot]:  # noqa: ANN401 - fields of Trial
    return [seen(20.0 * i, training("vae", value, 20.0 * i, **changes)) for i, value in enumerate(SLOWING)]


def test_growth_below_alpha_of_the_peak_steps_through_the_lists_and_growth_above_it_returns_to_new() -> None:
    back = seen(100.0, training("vae", 20.0, 100.0))
    decisions = run(FlowCon(), [*slowing(), back])
    assert [decision.assessments[TrialId("vae")].category for decision in decisions] == [P, P, W, C, P]


def test_figure_6_5_gives_a_quarter_to_the_slow_trial_and_three_to_the_fresh_one() -> None:
    both = seen(61.0, training("vae", 49.85, 60.0), training("mnist", 0.0, 0.0, progress=None))
    last = run(FlowCon(), [*slowing(), both])[-1]
    assert resizes(last) == {"vae": 0.25 * 2, "mnist": 0.75 * 2}


def test_the_shares_of_a_node_come_from_what_its_trials_asked_for_not_from_what_it_has() -> None:
    both = seen(61.0, training("vae", 49.85, 60.0, cpu=2.0), training("mnist", 0.0, 0.0, cpu=1.0, progress=None))
    assert resizes(run(FlowCon(), [*slowing(), both])[-1]) == {"vae": 0.25 * 3, "mnist": 0.75 * 3}


def test_the_shrink_comes_before_the_growth_it_pays_for() -> None:
    both = seen(61.0, training("vae", 49.85, 60.0), training("mnist", 0.0, 0.0, progress=None))
    order = [proposal.action.trial for proposal in run(FlowCon(), [*slowing(), both])[-1].proposals]
    assert order == ["vae", "mnist"]


def test_one_in_and_one_out_in_the_same_round_is_a_change() -> None:
    one, other = seen(0.0, training("a", 1.0, 0.0)), seen(5.0, training("b", 1.0, 5.0))
    first, second = run(FlowCon(), [one, other])
    assert first.wake_at == 20.0
    assert second.wake_at == 25.0
    assert set(second.state.trials) == {"b"}


def test_between_two_runs_nothing_changes() -> None:
    first, second = run(FlowCon(), [seen(0.0, training("a", 1.0, 0.0)), seen(19.0, training("a", 0.5, 19.0))])
    assert second.state == first.state
    assert second.wake_at == 20.0


def test_when_all_complete_they_compete_freely_and_the_interval_doubles_up_to_eightfold() -> None:
    state = FlowConState({A: FlowConMemo(C, limit=0.2), B: FlowConMemo(C, limit=0.9)})
    waits, now = [], 0.0
    for _ in range(5):
        pair = (training("a", 1.0, now, cpu=0.5, base_cpu=1.0), training("b", 1.0, now, cpu=1.5, base_cpu=1.0))
        decision = FlowCon().decide(seen(now, *pair), state)
        assert decision.wake_at is not None
        waits.append(decision.wake_at - now)
        state, now = decision.state, decision.wake_at
    assert waits == [40.0, 80.0, 160.0, 160.0, 160.0]
    assert {memo.limit for memo in state.trials.values()} == {1.0}


def test_the_trials_that_compete_freely_share_alike() -> None:
    state = FlowConState({A: FlowConMemo(C, limit=0.2), B: FlowConMemo(C, limit=0.9)})
    pair = (training("a", 1.0, 0.0, cpu=0.5, base_cpu=1.0), training("b", 1.0, 0.0, cpu=1.5, base_cpu=1.0))
    assert resizes(FlowCon().decide(seen(0.0, *pair), state)) == {"a": 1.0, "b": 1.0}


def test_a_trial_that_ends_frees_its_share_at_once() -> None:
    state = run(FlowCon(), [seen(0.0, training("a", 1.0, 0.0), training("b", 1.0, 0.0))])[-1].state
    shrunk = training("a", 1.0, 0.0, cpu=0.25, base_cpu=1.0)
    gone = trial("b", phase=Phase.SUCCEEDED)
    assert resizes(FlowCon().decide(seen(3.0, shrunk, gone), state)) == {"a": 1.0}


def test_a_change_too_small_to_matter_is_not_made() -> None:
    state = FlowConState({A: FlowConMemo(C), B: FlowConMemo(C)})
    near = (training("a", 1.0, 0.0, cpu=0.97, base_cpu=1.0), training("b", 1.0, 0.0, cpu=1.03, base_cpu=1.0))
    assert resizes(FlowCon().decide(seen(0.0, *near), state)) == {}
    assert resizes(FlowCon(min_change=0.01).decide(seen(0.0, *near), state)) == {"a": 1.0, "b": 1.0}


def test_a_resize_that_was_refused_is_asked_for_again_at_the_next_measurement() -> None:
    unheard = [
        seen(61.0 + i, training("vae", 49.85 - i / 1000, 60.0 + i), training("mnist", 0.0, 0.0, progress=None))
        for i in (0, 20)
    ]
    first, second = run(FlowCon(), [*slowing(), *unheard])[-2:]
    assert resizes(first) == resizes(second) != {}


def test_an_idle_trial_and_one_whose_use_is_unknown_stay_in_their_list() -> None:
    for cpu in (0.0, None):
        still = [
            seen(20.0 * i, training("a", v, 20.0 * i, progress=replace(progress(v, 20.0 * i), cpu_seconds=cpu)))
            for i, v in enumerate(SLOWING)
        ]
        last = run(FlowCon(), still)[-1]
        assert last.state.trials[A].category is P
        assert last.state.trials[A].efficiency is None


def test_a_stale_trial_keeps_its_limit_and_a_repeated_report_its_list() -> None:
    *before, _ = slowing()
    repeated = replace(before[-1], now=60.0)
    stale = replace(before[-1], now=81.0)
    decisions = run(FlowCon(), [*before, repeated, stale])
    vae = TrialId("vae")
    assert [decision.state.trials[vae].category for decision in decisions[-3:]] == [W, W, W]
    assert decisions[-1].state.trials[vae].stale
    assert [resizes(decision) for decision in decisions[-2:]] == [{}, {}]


def test_a_trial_that_moves_to_another_node_keeps_its_list_there() -> None:
    nodes = (node("m", 8.0), node("n", 8.0))
    there = seen(61.0, training("vae", 49.85, 60.0, nodes=(NodeName("n"),), attempt=2), nodes=nodes)
    assert run(FlowCon(), [*slowing(), there])[-1].state.trials[TrialId("vae")].category is C


def test_a_gang_on_one_node_is_resized_per_worker_and_one_on_several_is_left_alone() -> None:
    state = FlowConState({A: FlowConMemo(C), B: FlowConMemo(P), TrialId("wide"): FlowConMemo(P)})
    nodes = (node("m", 8.0), node("n", 8.0))
    gang = trial("b", "m", "m", cpu=1.0)
    wide = trial("wide", "m", "n", cpu=1.0)
    decision = FlowCon().decide(seen(0.0, trial("a", "m", cpu=1.0), gang, wide, nodes=nodes), state)
    assert resizes(decision) == {"a": 1.5, "b": 0.75}


def memo(category: Category, efficiency: float | None, limit: float = 1.0) -> FlowConMemo:
    return FlowConMemo(category, efficiency=efficiency, peak=efficiency or 0.0, limit=limit)


def test_the_limits_of_algorithm_1() -> None:
    memos = {
        "new": memo(P, 6.0),
        "fresh": memo(P, None),
        "watched": memo(W, 2.0, limit=0.4),
        "completing": memo(C, 0.5),
        "grown": memo(P, 0.1),
    }
    named = {TrialId(name): one for name, one in memos.items()}
    total = 6.0 + 6.0 + 2.0 + 0.5 + 0.1
    assert limits(named, beta=2.0) == pytest.approx(
        {"new": 6 / total, "fresh": 1.0, "watched": 0.4, "completing": 0.1, "grown": 0.1}
    )


def test_a_trial_that_does_not_grow_at_all_gets_the_least_limit() -> None:
    memos = {A: FlowConMemo(P, efficiency=0.0), B: FlowConMemo(C, efficiency=0.0)}
    assert limits(memos, beta=2.0) == {A: 0.25, B: 0.25}


def test_the_fair_split_of_figure_6_5() -> None:
    assert fair_shares({A: 0.25, B: 1.0}) == {A: 0.25, B: 0.75}


caps = st.dictionaries(st.sampled_from("abcdef").map(TrialId), st.floats(1e-3, 1.0), min_size=1)


@given(caps)
def test_a_fair_split_hands_out_everything_and_nobody_could_have_more_from_a_richer_one(
    limit: dict[TrialId, float],
) -> None:
    shares = fair_shares(limit)
    assert sum(shares.values()) == pytest.approx(1.0)
    if sum(limit.values()) > 1:
        most = max(shares.values())
        for name, share in shares.items():
            assert share <= limit[name]
            assert share == pytest.approx(limit[name]) or share == pytest.approx(most)
    else:
        assert {name: share / limit[name] for name, share in shares.items()} == pytest.approx(
            dict.fromkeys(shares, 1 / sum(limit.values()))
        )


@given(caps, st.data())
def test_what_is_granted_fits_the_budget_and_takes_from_increases_only(
    now: dict[TrialId, float], data: st.DataObject
) -> None:
    wanted = {name: data.draw(st.floats(1e-3, 1.0)) for name in now}
    budget = data.draw(st.floats(sum(now.values()), 10.0))
    granted = within_budget(now, wanted, budget)
    assert sum(granted.values()) <= budget + 1e-9
    for name, cpu in granted.items():
        assert min(now[name], wanted[name]) <= cpu <= wanted[name]


def test_a_huge_efficiency_does_not_overflow() -> None:
    huge = {A: memo(P, 1.7e308), B: memo(P, 1.7e308)}
    assert limits(huge, 2.0) == {A: 0.5, B: 0.5}


def test_what_comes_towards_a_node_is_not_given_away() -> None:
    nodes = (node("m", 3.0), node("n", 3.0))
    coming = trial("c", "n", cpu=1.0, phase=Phase.MOVING, destination=(NodeName("m"),))
    state = FlowConState({A: FlowConMemo(C, limit=0.25), B: FlowConMemo(P)})
    pair = (trial("a", "m", cpu=0.5, base_cpu=2.0), trial("b", "m", cpu=0.5, base_cpu=2.0))
    given = resizes(FlowCon().decide(seen(0.0, *pair, coming, nodes=nodes), state))
    assert sum(given.values()) == pytest.approx(2.0)


def test_a_report_of_another_trial_never_resizes_to_nothing() -> None:
    tiny = [trial(name, "m", cpu=0.01, progress=Progress(1, 1, 1, 1, 0.0)) for name in ("a", "b")]
    state = FlowConState({A: FlowConMemo(C, limit=0.001), B: FlowConMemo(P)})
    for proposal in FlowCon().decide(seen(0.0, *tiny), state).proposals:
        assert isinstance(proposal.action, Resize)
        assert proposal.action.cpu >= 0.01


def test_without_a_new_measurement_a_refused_resize_is_not_asked_for_again() -> None:
    fresh = training("mnist", 0.0, 0.0, progress=None)
    both = [seen(now, training("vae", 49.85, 60.0), fresh) for now in (61.0, 81.0, 201.0)]
    asked = [resizes(decision) for decision in run(FlowCon(), [*slowing(), *both])[-3:]]
    assert asked[0] != {}
    assert asked[1:] == [{}, {}]


def test_a_stale_trial_keeps_its_limit_while_another_s_is_set_anew() -> None:
    known = {A: FlowConMemo(P, efficiency=1.0, peak=1.0, limit=0.3), B: FlowConMemo(P, efficiency=3.0, peak=3.0)}
    old = training("a", 1.0, 0.0)
    for now, kept in ((40.0, 0.25), (41.0, 0.3)):
        pair = (old, training("b", 1.0, now))
        state = FlowCon().decide(seen(now, *pair), FlowConState(known)).state
        assert [state.trials[name].limit for name in (A, B)] == [kept, 0.75]
