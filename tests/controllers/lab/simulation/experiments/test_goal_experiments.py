"""What the experiments with deadlines, targets and times per step are there to show, on one seed."""

import pytest

from controllers.lab.simulation.evaluation import (
    ExperimentPlan,
    RunFigures,
    first_nodes,
    run_plans,
    run_seed,
    simulate_seed,
    to_json,
)
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT, experiment_named
from controllers.lab.simulation.experiments.experiment import given_workload
from controllers.lab.simulation.experiments.goal_experiments import DEADLINE_EXPERIMENTS, TARGET_EXPERIMENTS

GOALS = tuple(setup.id for setup in (*DEADLINE_EXPERIMENTS, *TARGET_EXPERIMENTS))


def silent(runs: int) -> None:
    assert runs > 0


def figures(name: str, *policies: str) -> dict[str, RunFigures]:
    found = run_seed(ExperimentPlan(EVERY_EXPERIMENT[name], policies), 0)
    return dict(zip(policies, found, strict=True))


def measured(run: RunFigures, name: str) -> float:
    value = run.measures[name]
    assert value is not None
    return value


def test_the_experiments_with_goals_are_known_by_name_in_any_case() -> None:
    assert GOALS == ("D1", "D1-half", "D1-most", "D1-crowded", "D2", "D2-half", "D2-most", "T1", "Q1")
    assert experiment_named("d1-HALF") is EVERY_EXPERIMENT["D1-half"]
    assert experiment_named("D1-") is None


@pytest.mark.parametrize("name", EVERY_EXPERIMENT)
def test_what_was_published_of_a_measure_is_of_one_that_the_experiment_has(name: str) -> None:
    setup = EVERY_EXPERIMENT[name]
    known = {measure.name for measure in setup.measures}
    assert len(known) == len(setup.measures)
    assert {measure for told in setup.published for measure in told.measures} <= known


@pytest.mark.parametrize("name", GOALS)
def test_policies_that_place_no_trials_start_from_where_the_default_scheduler_put_them(name: str) -> None:
    setup = EVERY_EXPERIMENT[name]
    pins = first_nodes(setup, setup.workload(0), 0)
    for run in simulate_seed(ExperimentPlan(setup, ("default", "fifo")), 0):
        assert {trial.id: trial.first_node for trial in run.result.trials} == pins


def test_more_deadlines_are_met_than_by_default_where_resources_are_short_and_all_where_they_are_not() -> None:
    short = figures("D1", "default", "deadline")
    assert measured(short["deadline"], "deadlines_met") > measured(short["default"], "deadlines_met")
    ample = figures("D2", "deadline")["deadline"]
    assert measured(ample, "deadlines_met") == 1.0
    assert measured(ample, "allocation_used") > 0.95


def test_what_authors_request_changes_nothing_else_of_the_jobs() -> None:
    start, half, most = (EVERY_EXPERIMENT[name].workload(4) for name in ("D1", "D1-half", "D1-most"))
    assert start.nodes == half.nodes == most.nodes
    jobs = [[(t.id, t.submitted_at, t.work_s, t.goals) for t in workload.trials] for workload in (start, half, most)]
    assert jobs[0] == jobs[1] == jobs[2]
    assert {trial.cpu for trial in start.trials} == {1.0}
    for half_of, all_of in zip(half.trials, most.trials, strict=True):
        assert all_of.cpu == all_of.speedup.max_cores == 2 * half_of.cpu


def test_trials_reach_their_targets_sooner_where_those_past_theirs_make_room() -> None:
    found = figures("T1", "default", "tradl")
    assert measured(found["tradl"], "time_to_target_s") < 0.8 * measured(found["default"], "time_to_target_s")
    assert measured(found["tradl"], "time_to_target_change") < -0.2


def test_more_trials_have_the_time_per_step_they_asked_for_where_shares_follow_it() -> None:
    found = figures("Q1", "default", "dqoes")
    even, asked = (measured(found[name], "trials_at_pace_or_faster") for name in ("default", "dqoes"))
    trials = len(EVERY_EXPERIMENT["Q1"].workload(0).trials)
    assert even < asked <= trials
    even, asked = (measured(found[name], "at_pace_while_all_run") for name in ("default", "dqoes"))
    assert even < 0.3 * trials < 0.7 * trials < asked <= trials


def test_a_change_says_nothing_of_the_baseline_itself() -> None:
    baseline, other = (
        one["measures"]
        for one in to_json(run_plans([ExperimentPlan(EVERY_EXPERIMENT["D1"], ("edf", "fifo"))], [0], silent, 1))[
            "experiments"
        ]
    )
    assert baseline["deadlines_met_change"] is None
    expected = other["deadlines_met"]["mean"] / baseline["deadlines_met"]["mean"] - 1
    assert other["deadlines_met_change"]["mean"] == pytest.approx(expected)


def test_a_workload_of_ones_own_is_judged_by_the_goals_that_its_trials_have() -> None:
    for name in ("D1", "T1", "Q1"):
        known = EVERY_EXPERIMENT[name]
        assert given_workload("mine", known.workload(0)).measures == known.measures
    assert given_workload("mine", EVERY_EXPERIMENT["F1"].workload(0)).measures == ()
