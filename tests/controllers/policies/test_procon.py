from dataclasses import replace

import pytest

from controllers.core.actions import Decision, Place
from controllers.core.model import Phase, Progress, Snapshot, Trial, TrialId
from controllers.policies import ProCon
from controllers.policies.kit.paces import StepMemo, StepTime
from controllers.policies.procon import ProConState, contention
from tests.controllers.policies.policy_fakes import node, run, snapshot, trial


def waiting(name: str = "new") -> Trial:
    return trial(name, phase=Phase.PENDING, gated=True, attempt=0)


def at(now: float, step: int, cpu_seconds: float, total: int | None = 100) -> Progress:
    return Progress(1.0, 0.5, 0.5, step, now, cpu_seconds, total)


def place(decision: Decision[ProConState]) -> str | None:
    action = decision.proposals[0].action
    assert isinstance(action, Place)
    return action.node


def story(*ends: tuple[str, str, int, float, int | None]) -> list[Snapshot]:
    """Return two looks, 20 s apart, at trials (name, node, steps made, core seconds used, steps in all)."""
    nodes = [node("x", 4.0), node("y", 4.0)]
    begun = [trial(name, where, progress=at(0.0, 0, 0.0, total)) for name, where, _, _, total in ends]
    grown = [trial(name, where, progress=at(20.0, step, cpu, total)) for name, where, step, cpu, total in ends]
    return [snapshot(0.0, begun, nodes), snapshot(20.0, [*grown, waiting()], nodes)]


def test_contention_is_the_time_of_a_step_by_the_part_of_the_node_in_use_times_the_steps_left() -> None:
    one = trial("a", "x", progress=at(20.0, 40, 40.0))
    times = {TrialId("a"): StepMemo(StepTime(seconds=0.5, cores=2.0))}
    found = contention(snapshot(20.0, [one], [node("x", 4.0)]), times)
    assert found.known == {"a": pytest.approx(0.5 / 0.5 * 60)}
    assert found.other == pytest.approx(60)


def test_a_nodes_cost_is_the_sum_of_contention_times_the_number_of_trials() -> None:
    found = replace(contention(snapshot(0.0, [], []), {}), known={TrialId("a"): 60.0}, other=10.0)
    assert found.cost(node("x"), [trial("a", "x"), trial("b", "x")]) == (60 + 10) * 2
    assert found.cost(node("x"), []) == 0


def test_a_new_trial_avoids_the_node_whose_trial_has_the_most_left() -> None:
    looks = story(("long", "x", 10, 40.0, 1000), ("short", "y", 10, 40.0, 20))
    last = run(ProCon(), looks)[-1]
    assert place(last) == "y"
    assert "least contention to come" in last.proposals[0].reason


def test_before_anything_is_measured_the_node_with_the_fewest_trials_is_chosen() -> None:
    seen = snapshot(0.0, [trial("a", "x"), trial("b", "x"), trial("c", "y"), waiting()], [node("x"), node("y")])
    assert place(ProCon().decide(seen, ProConState())) == "y"


def test_a_trial_that_never_says_how_many_steps_it_makes_counts_as_the_mean_and_is_named_early() -> None:
    looks = story(("told", "x", 10, 40.0, 100), ("untold", "y", 10, 40.0, None))
    first, last = run(ProCon(), looks)
    assert "never said how many steps" in first.assessments[TrialId("untold")].outlook
    assert TrialId("told") not in first.assessments
    known = contention(looks[-1], last.state.times)
    assert known.cost(node("y"), [looks[-1].trials[1]]) == known.other == known.known[TrialId("told")]


def test_nothing_is_measured_across_a_move() -> None:
    begun, grown = story(("a", "x", 10, 40.0, 100))
    elsewhere = replace(grown, trials=tuple(replace(one, attempt=2) for one in grown.trials))
    assert run(ProCon(), [begun, grown])[-1].state.times[TrialId("a")].latest is not None
    assert run(ProCon(), [begun, elsewhere])[-1].state.times[TrialId("a")].latest is None


def test_steps_that_are_made_again_measure_nothing() -> None:
    begun = snapshot(0.0, [trial("a", "x", progress=at(0.0, 50, 0.0))], [node("x")])
    again = snapshot(20.0, [trial("a", "x", progress=at(20.0, 40, 20.0))], [node("x")])
    assert run(ProCon(), [begun, again])[-1].state.times[TrialId("a")].latest is None
