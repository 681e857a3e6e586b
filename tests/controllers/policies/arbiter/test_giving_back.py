"""Who is suspended for others, when, and that nothing flaps and nobody starves."""

import math
from dataclasses import replace

from controllers.core.model import NodeKind, NodeName, TrialId
from controllers.policies.arbiter import Arbiter, ArbiterState, NamespaceTerms, SweepDemand
from tests.controllers.policies.arbiter.sharing_sweeps import AT_ONCE, many, nodes, parts_of, runs, sweep, waits

FULL = sweep("red", *(runs(f"r{n}", f"n{n % 2}") for n in range(8)))


def test_a_sweep_over_its_part_gives_back_while_another_waits() -> None:
    parts = parts_of([FULL, sweep("blue", *many("b", 9))], nodes(2), AT_ONCE.model_copy(update={"disruption": 1.0}))
    assert len(parts["red"].gives_back) == 4
    assert "suspended: others have less" in parts["red"].reason
    assert not parts["blue"].gives_back


def test_unknown_nodes_that_may_never_come_are_no_room_for_who_waits() -> None:
    unknown = [NodeKind("", math.inf, more=1.0)]
    sweeps = [FULL, sweep("blue", *many("b", 9))]
    parts = AT_ONCE.decide(0.0, sweeps, nodes(2), ArbiterState(), unknown).parts
    without = parts_of(sweeps, nodes(2))
    assert {name: replace(part, asks=without[name].asks) for name, part in parts.items()} == without
    assert parts["red"].gives_back


def test_as_many_leave_at_once_as_may_be_on_the_move() -> None:
    leaving = (replace(trial, steady=False, leaving=True) for trial in FULL.trials[:1])
    parts = parts_of([FULL, sweep("blue", *many("b", 9))], nodes(2))
    assert len(parts["red"].gives_back) == 2
    fewer = replace(FULL, trials=(*leaving, *FULL.trials[1:]))
    assert len(parts_of([fewer, sweep("blue", *many("b", 9))], nodes(2))["red"].gives_back) == 1


def test_room_that_is_being_left_is_enough_for_who_waits_for_it() -> None:
    leaving = tuple(replace(trial, steady=False, leaving=True) for trial in FULL.trials[:4])
    half_gone = replace(FULL, trials=(*leaving, *FULL.trials[4:]))
    arbiter = AT_ONCE.model_copy(update={"disruption": 1.0})
    parts = parts_of([half_gone, sweep("blue", *many("b", 9))], nodes(2), arbiter)
    assert len(parts["blue"].starts) == 4
    assert not parts["red"].gives_back


def test_nobody_gives_back_for_a_difference_that_would_only_change_hands() -> None:
    sweeps = [
        sweep("red", runs("r0", "n0"), runs("r1", "n0"), *many("w", 5)),
        sweep("blue", runs("b0", "n0"), *many("v", 5)),
    ]
    assert not any(part.gives_back for part in parts_of(sweeps, nodes(1, 3.0)).values())


def test_a_trial_is_left_alone_until_it_has_run_for_minutes_and_the_claim_has_settled() -> None:
    arbiter, state = Arbiter(), ArbiterState()
    sweeps = [FULL, sweep("blue", *many("b", 9))]
    given = {}
    for now in range(0, 400, 5):
        ruling = arbiter.decide(float(now), sweeps, nodes(2), state)
        state = ruling.state
        given[now] = ruling.parts["red"].gives_back
    assert not any(given[now] for now in given if now < 300)
    assert given[300]
    again = replace(FULL, trials=tuple(replace(trial, attempt=2) for trial in FULL.trials))
    assert not arbiter.decide(400.0, [again, sweeps[1]], nodes(2), state).parts["red"].gives_back


def test_what_ends_soon_is_left_to_end_and_single_trials_leave_before_gangs() -> None:
    ending = replace(FULL, trials=tuple(replace(trial, left_s=30.0) for trial in FULL.trials))
    assert not parts_of([ending, sweep("blue", *many("b", 9))], nodes(2))["red"].gives_back
    gang = runs("gang", "n0", workers=2, nodes=(NodeName("n0"), NodeName("n1")))
    mixed = sweep("red", gang, *(runs(f"r{n}", f"n{n % 2}") for n in range(6)))
    parts = parts_of([mixed, sweep("blue", *many("b", 9))], nodes(2), AT_ONCE.model_copy(update={"disruption": 1.0}))
    assert len(parts["red"].gives_back) == 4
    assert TrialId("gang") not in parts["red"].gives_back


def test_room_is_made_on_one_node_for_a_trial_that_needs_much_of_it() -> None:
    small = sweep("red", *(runs(f"r{n}", f"n{n % 2}") for n in range(8)))
    parts = parts_of(
        [small, sweep("blue", waits("wide", 4.0))], nodes(2), AT_ONCE.model_copy(update={"disruption": 1.0})
    )
    leaves = {int(trial[1:]) % 2 for trial in parts["red"].gives_back}
    assert len(parts["red"].gives_back) == 4
    assert len(leaves) == 1


def test_who_has_most_gives_first() -> None:
    little = sweep("green", runs("g0", "n0"), runs("g1", "n1"))
    much = sweep("red", *(runs(f"r{n}", f"n{n % 2}") for n in range(6)))
    parts = parts_of(
        [little, much, sweep("blue", *many("b", 2))], nodes(2), AT_ONCE.model_copy(update={"disruption": 1.0})
    )
    assert not parts["green"].gives_back
    assert len(parts["red"].gives_back) == 2


def test_a_sweep_with_pods_at_the_scheduler_gives_nothing_back_for_it_would_get_it_again() -> None:
    queueing = replace(FULL, trials=(*FULL.trials, waits("q", held_back=False)), places=False)
    assert not parts_of([queueing, sweep("blue", *many("b", 9))], nodes(2))["red"].gives_back


def test_a_sweep_that_tries_whether_a_node_comes_gives_back_all_the_same_and_who_is_owed_room_tries_next() -> None:
    trying = replace(FULL, trials=(*FULL.trials, waits("q", held_back=False)))
    blue = sweep("zulu", *many("b", 9))
    assert parts_of([trying, blue], nodes(2))["red"].gives_back
    parts = AT_ONCE.decide(0.0, [FULL, blue], nodes(2), ArbiterState(), [NodeKind("", 4.0)]).parts
    assert (parts["red"].asks, parts["zulu"].asks) == (0, 1)


def test_what_is_over_a_quota_is_given_back_though_nobody_waits() -> None:
    parts = parts_of([FULL], nodes(2), terms={"red": NamespaceTerms(quota_cpu=7.0)})
    assert len(parts["red"].gives_back) == 1
    assert "quota of 7 cores" in parts["red"].reason


def rounds(arbiter: Arbiter, first: list[SweepDemand], seconds: int) -> dict[str, float]:
    """Let what may start, start, and what must leave, leave, until then; return since when each sweep first ran."""
    there, state, ran = nodes(1), ArbiterState(), dict[str, float]()
    demands = {demand.name: demand for demand in first}
    for now in range(0, seconds, 5):
        ruling = arbiter.decide(float(now), demands.values(), there, state)
        state = ruling.state
        used = sum(t.each.cpu for d in demands.values() for t in d.trials if t.nodes)
        for name, part in ruling.parts.items():
            trials = []
            for trial in demands[name].trials:
                shown = trial
                if trial.id in part.gives_back:
                    shown = waits(trial.id, trial.each.cpu, attempt=trial.attempt + 1)
                    used -= trial.each.cpu
                elif trial.id in part.starts and used + trial.each.cpu <= there[0].cpu:
                    shown = runs(trial.id, "n0", trial.each.cpu, attempt=trial.attempt + 1)
                    used += trial.each.cpu
                    ran.setdefault(name, now)
                trials.append(shown)
            demands[name] = replace(demands[name], trials=tuple(trials))
    return ran


def test_a_sweep_of_wide_trials_gets_its_turn_beside_one_of_small_ones_and_the_other_way_round() -> None:
    wide, small = sweep("wide", waits("w", 4.0)), sweep("small", *many("s", 9))
    assert rounds(Arbiter(), [wide, small], 2000).keys() == {"wide", "small"}


def test_a_low_priority_gets_a_trials_worth_after_its_patience_whatever_the_others_want() -> None:
    low = sweep("low", *many("l", 3), namespace="red", priority=-100)
    high = sweep("high", *many("h", 9), namespace="red", priority=100)
    ran = rounds(Arbiter(), [low, high], 2000)
    assert 600 <= ran["low"] <= 1000


def test_room_that_a_sweep_does_not_take_goes_to_others_after_two_minutes_and_comes_back() -> None:
    stubborn, eager = sweep("stubborn", *many("s", 9)), sweep("eager", *many("e", 9))
    state, starts = ArbiterState(), {}
    for now in range(0, 900, 10):
        ruling = Arbiter().decide(float(now), [stubborn, eager], nodes(1), state)
        state = ruling.state
        starts[now] = len(ruling.parts["stubborn"].starts)
    assert starts[0] == starts[110] == 2
    assert starts[120] == starts[710] == 0
    assert (
        "started nothing"
        in Arbiter()
        .decide(720.0 - 200, [stubborn, eager], nodes(1), ArbiterState(offered={"stubborn": 0.0}))
        .parts["stubborn"]
        .reason
    )
    assert starts[730] == 2


def test_only_the_sweep_whose_turn_is_next_tries_whether_unknown_nodes_come_and_one_trial_at_a_time() -> None:
    unknown = [NodeKind("", 4.0)]
    red = sweep("red", *(runs(f"r{n}", "n0") for n in range(4)), *many("w", 3))
    blue = sweep("blue", *many("b", 3))
    parts = AT_ONCE.decide(0.0, [red, blue], nodes(1), ArbiterState(), unknown).parts
    assert (parts["red"].asks, parts["blue"].asks) == (0, 1)
    asking = sweep("blue", waits("b000", held_back=False), *many("c", 2))
    parts = AT_ONCE.decide(0.0, [red, asking], nodes(1), ArbiterState(), unknown).parts
    assert (parts["red"].asks, parts["blue"].asks) == (0, 0)
    assert parts["red"].gives_back, "what waits at the scheduler has a claim"
    assert AT_ONCE.decide(0.0, [red], nodes(1), ArbiterState(), unknown).parts["red"].asks is None


def test_as_many_trials_go_to_the_scheduler_as_have_room_there_or_on_nodes_to_come() -> None:
    known = [NodeKind("big", 4.0, more=2)]
    red, blue = (sweep(name, *many(name[0], 9, cpu=4.0)) for name in ("red", "blue"))
    parts = AT_ONCE.decide(0.0, [red, blue], nodes(2), ArbiterState(), known).parts
    assert [(len(parts[name].starts), parts[name].asks) for name in ("red", "blue")] == [(2, 2), (2, 2)]


def test_nothing_starts_in_room_that_a_quota_allows_only_once_others_of_the_namespace_have_left() -> None:
    terms = {"red": NamespaceTerms(quota_cpu=4.0)}
    sweeps = [
        sweep("long", *(runs(f"r{n}", "n0") for n in range(4)), namespace="red"),
        sweep("late", *many("w", 2, cpu=2.0), namespace="red", weight=3.0),
    ]
    parts = parts_of(sweeps, nodes(2), terms=terms)
    assert parts["late"].starts
    assert parts["late"].held_back == {TrialId("w000"), TrialId("w001")}
    assert parts["long"].gives_back


def test_a_sweep_that_left_its_room_to_others_still_breaks_no_quota() -> None:
    arbiter = AT_ONCE.model_copy(update={"terms": {"red": NamespaceTerms(quota_cpu=2.0)}, "lapses": 10.0})
    demand = sweep("red", *many("w", 3))
    state = arbiter.decide(0.0, [demand], nodes(1), ArbiterState()).state
    part = arbiter.decide(20.0, [demand], nodes(1), state).parts["red"]
    assert not part.starts, "it had room and started nothing"
    assert part.held_back == {TrialId("w002")}
