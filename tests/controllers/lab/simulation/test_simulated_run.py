"""Whole simulated sweeps, small enough to work out their times by hand."""

import math
from dataclasses import replace

import pytest

from controllers.core.actions import Migrate, Place, Resize
from controllers.core.errors import SpeconError
from controllers.core.model import NodeName, TrialId
from controllers.core.results import TrialResult
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.policies import Default
from controllers.policies.registry import POLICIES, parse_policy
from controllers.record.timeline import EventKind
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeSpec, Speedup, Workload
from tests.controllers.worlds.simulated.workloads import PLACES, EveryHeartbeat, Idle, Scripted, mixed, scenario, trial


def by_id(run: SimulatedRun) -> dict[str, TrialResult]:
    return {result.id: result for result in run.result.trials}


def completions(run: SimulatedRun) -> dict[str, float]:
    return {name: round(result.completed_s, 6) for name, result in by_id(run).items()}


def test_a_trial_alone_takes_as_long_as_its_work() -> None:
    assert completions(simulate(scenario([trial("a", 100)]), Default())) == {"a": 100.0}


def test_two_trials_share_a_core_until_one_has_ended() -> None:
    run = simulate(scenario([trial("a", 50, cpu=0.5), trial("b", 100, cpu=0.5)]), Default())
    assert completions(run) == {"a": 100.0, "b": 150.0}


def test_a_later_arrival_slows_down_what_runs_from_then_on() -> None:
    run = simulate(scenario([trial("a", 100, cpu=0.5), trial("b", 100, cpu=0.5, at=60)]), Default())
    assert completions(run) == {"a": 140.0, "b": 200.0}


def test_cores_are_shared_by_request() -> None:
    run = simulate(scenario([trial("a", 75, cpu=0.75), trial("b", 100, cpu=0.25)]), Default())
    assert completions(run) == {"a": 100.0, "b": 175.0}


def test_what_a_trial_cannot_use_goes_to_its_neighbour() -> None:
    wide = trial("wide", 100, cpu=0.5, speedup=Speedup.linear(2.0))
    run = simulate(scenario([wide, trial("narrow", 100, cpu=0.5, limit=0.5)], cores=[2.0]), Default())
    assert completions(run) == {"wide": round(100 / 0.75, 6), "narrow": 200.0}


def test_a_node_of_twice_the_speed_takes_half_the_time() -> None:
    fast = Workload((trial("a", 100),), (NodeSpec(NodeName("n1"), 1.0, speed=2.0),))
    assert completions(simulate(Scenario(fast, Costs.free()), Default())) == {"a": 50.0}


def test_starting_costs_time_and_work_on_its_share() -> None:
    costs = Costs(start_s=2.0, start_cpu_s=3.0)
    run = simulate(scenario([trial("a", 10, cpu=0.5), trial("b", 10, cpu=0.5)], costs=costs), Default())
    assert completions(run) == {"a": 28.0, "b": 28.0}


def test_a_trial_that_does_not_fit_waits_without_holding_up_the_next_one() -> None:
    wait = [trial("a", 100, cpu=0.6), trial("b", 100, cpu=0.6, at=1), trial("c", 10, cpu=0.4, at=2)]
    run = by_id(simulate(scenario(wait), Default()))
    assert run["c"].completed_s < run["a"].completed_s
    assert run["b"].completed_s == pytest.approx(run["a"].completed_s + 100)


def test_a_move_costs_what_it_costs_and_loses_no_work() -> None:
    costs = Costs(leave_s=2.0, next_attempt_s=5.0, start_s=1.0, restore_s=3.0, start_cpu_s=4.0)
    move = Scripted(((45.0, Migrate(TrialId("a"), (NodeName("n2"),))),))
    run = simulate(scenario([trial("a", 100)], [1.0, 1.0], costs, {"a": "n1"}), move)
    result = by_id(run)["a"]
    assert (result.node, result.first_node, result.moves, result.attempts) == ("n2", "n1", 1, 2)
    # 1 + 4 to begin with; 2 + 5 + 1 + 3 + 4 for the move.
    assert result.completed_s == pytest.approx(100 + 5 + 15)


def test_a_deaf_trial_trains_until_it_is_killed_and_resumes_from_its_last_checkpoint() -> None:
    deaf = trial("a", 100, deaf=True, checkpoint_every_s=20)
    move = Scripted(((30.0, Migrate(TrialId("a"), (NodeName("n2"),))),))
    run = simulate(scenario([deaf], [1.0, 1.0], Costs(grace_s=25.0), {"a": "n1"}), move)
    # Killed at 55 with 55 made, 40 of it saved.
    assert by_id(run)["a"].completed_s == pytest.approx(55 + 60)
    assert by_id(run)["a"].moves == 1


def test_a_resize_changes_who_gets_what_from_when_it_takes_hold() -> None:
    grow = Scripted(((20.0, Resize(TrialId("a"), 0.25)),))
    run = simulate(scenario([trial("a", 50, cpu=0.5), trial("b", 50, cpu=0.5)], costs=Costs(resize_s=10.0)), grow)
    # By 30 both have 15; then a has a third and b two thirds.
    assert by_id(run)["b"].completed_s == pytest.approx(30 + 35 * 1.5)
    assert by_id(run)["a"].completed_s == pytest.approx(100)
    assert by_id(run)["a"].resizes == 1


def test_gated_first_attempts_wait_until_they_are_placed() -> None:
    place = Scripted(((30.0, Place(TrialId("a"), (NodeName("n2"),))), (40.0, Place(TrialId("b")))))
    run = simulate(scenario([trial("a"), trial("b")], [1.0, 1.0]), place)
    assert {name: result.first_node for name, result in by_id(run).items()} == {"a": "n2", "b": "n1"}
    assert completions(run) == {"a": 130.0, "b": 140.0}


def test_a_policy_that_never_places_what_waits_is_told_on() -> None:
    with pytest.raises(SpeconError, match=r"'idle' leaves trials waiting: .* such as a"):
        simulate(scenario([trial("a")]), Idle(PLACES))


def test_pinned_first_attempts_go_to_their_node_and_wait_for_it_where_it_is_full() -> None:
    run = by_id(simulate(scenario([trial("a"), trial("b")], [1.0, 1.0], pinned={"a": "n2", "b": "n2"}), Default()))
    assert {result.first_node for result in run.values()} == {"n2"}
    assert run["b"].completed_s == 200.0


def test_a_pin_to_a_node_that_could_never_hold_the_trial_is_passed_over() -> None:
    run = simulate(scenario([trial("a", cpu=2.0)], [1.0, 4.0], pinned={"a": "n1"}), Default())
    assert by_id(run)["a"].first_node == "n2"


def test_a_trial_that_no_node_could_hold_is_refused_with_what_it_asks_for() -> None:
    with pytest.raises(WorkloadError, match="trial a requests 2 cores"):
        simulate(scenario([trial("a", cpu=2.0)]), Default())


def test_the_final_metric_is_the_last_report_whenever_the_engine_last_looked() -> None:
    run = simulate(scenario([trial("a")], costs=Costs(metric_delay_s=60.0)), Default())
    assert by_id(run)["a"].final_metric == pytest.approx(0.1)


def test_usage_adds_up_to_the_work_done() -> None:
    trials = [trial("a", 50, cpu=0.5), trial("b", 100, cpu=0.5, at=20)]
    run = simulate(scenario(trials), Default())
    done: dict[str, float] = {}
    since: dict[str, float] = {}
    for event in run.timeline:
        if event.kind is EventKind.USAGE and event.value is not None:
            done[event.trial] = done.get(event.trial, 0.0) + event.value * (event.at - since.get(event.trial, 0.0))
            since[event.trial] = event.at
    assert done == {"a": pytest.approx(50.0), "b": pytest.approx(100.0)}


@pytest.mark.parametrize(
    ("field", "amount"),
    [("work_s", 0.0), ("work_s", math.nan), ("cpu", -1.0), ("limit", 0.0), ("checkpoint_every_s", -5.0)],
)
def test_a_trial_that_cannot_be_is_refused_with_the_field_and_its_value(field: str, amount: float) -> None:
    with pytest.raises(WorkloadError, match=f"trial a: {field} .*{amount}"):
        replace(trial("a"), **{field: amount})  # type: ignore[arg-type] # any field


def test_a_long_calm_is_not_taken_for_the_end() -> None:
    calm = scenario([trial("a", 3000)], costs=Costs(heartbeat_s=0.5))
    assert completions(simulate(calm, EveryHeartbeat(Default()))) == {"a": 3000.0}


_CLAIRVOYANT = {"shortest-remaining", "longest-remaining"}
_EAGER = {"ahead", "kais", "optuna"}
"""Policies that go by every report that a tick shows, and so know more where there are more ticks."""


@pytest.mark.parametrize("spec", ["specon+flowcon", *sorted(POLICIES.keys() - _CLAIRVOYANT - _EAGER)])
def test_ticking_every_heartbeat_decides_nothing_else(spec: str) -> None:
    sweep = mixed(trials=16, cores=[3.0] * 3, seed=1)
    policy = parse_policy(spec)
    seldom, often = simulate(sweep, policy), simulate(sweep, EveryHeartbeat(policy))
    assert often.ticks > 2 * seldom.ticks
    assert often.result == seldom.result


@pytest.mark.parametrize("spec", sorted(_EAGER))
def test_ticking_every_heartbeat_hardly_changes_what_an_eager_policy_comes_to(spec: str) -> None:
    sweep = mixed(trials=16, cores=[3.0] * 3, seed=1)
    policy = parse_policy(spec)
    seldom, often = simulate(sweep, policy), simulate(sweep, EveryHeartbeat(policy))
    assert often.ticks > 1.5 * seldom.ticks
    assert often.result.makespan_s == pytest.approx(seldom.result.makespan_s, rel=0.03)
    assert often.result.mean_completion_s == pytest.approx(seldom.result.mean_completion_s, rel=0.03)
