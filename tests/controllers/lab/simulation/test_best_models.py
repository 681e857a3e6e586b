"""Regret, and when a good model is known: on runs of a few trials whose values are plain to see."""

import math
import random
from dataclasses import replace

import pytest

from controllers.core.model import Direction, NodeName, TrialId
from controllers.core.results import RunResult, TrialResult
from controllers.lab.simulation.best_models import (
    BEST_MODELS,
    best_value_lost_over,
    beyond_chance_percent,
    lost_over,
    noise_percent,
    regret_percent,
    within_1_percent_at_s,
)
from controllers.lab.simulation.evaluation import ExperimentPlan, run_plans, to_json
from controllers.lab.simulation.experiments.experiment import OwnExperiment, given_workload
from controllers.lab.simulation.measures import ComparedRun
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.policies import Default
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, TrialSpec, Workload

FINALS = (1.0, 2.0, 3.0, 11.0, math.nan)


def workload(sign: int = 1) -> Workload:
    direction = Direction.MINIMIZE if sign > 0 else Direction.MAXIMIZE
    return Workload(
        tuple(
            TrialSpec(
                *(TrialId(f"t{n}"), 0.0, 10.0, (CurvePoint(5.0, sign * 9.0), CurvePoint(10.0, sign * final)), 1.0),
                direction=direction,
            )
            for n, final in enumerate(FINALS)
        ),
        (NodeSpec(NodeName("one"), 5.0),),
    )


def ran(stopped: tuple[int, ...] = (), sign: int = 1, finals: tuple[float, ...] = FINALS) -> ComparedRun:
    trials = tuple(
        TrialResult(f"t{n}", 0.0, 10.0, "one", 0, 1, sign * final, stopped="enough" if n in stopped else "")
        for n, final in enumerate(finals)
    )
    times = {TrialId(f"t{n}"): (5.0 + n, 10.0 + n)[: 1 if n in stopped else 2] for n in range(len(finals))}
    run = SimulatedRun(RunResult("some", trials), (), 0, 0, times)
    return ComparedRun(workload(sign), run, run)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("stopped", "percent"), [((), 0.0), ((3,), 0.0), ((0,), 100 / 1.5), ((0, 1, 2, 3), 1000 / 1.5)]
)
def test_regret_is_the_gap_of_the_best_that_ended_in_percent_of_best_to_median(
    sign: int, stopped: tuple[int, ...], percent: float
) -> None:
    assert regret_percent(ran(stopped, sign)) == pytest.approx(percent)
    assert lost_over(1.0, ran(stopped, sign)) == float(percent > 1)


def test_a_model_within_1_percent_is_known_when_the_first_of_them_reports_it() -> None:
    assert within_1_percent_at_s(ran()) == 10.0
    assert within_1_percent_at_s(ran((0,))) is None


def test_the_noise_of_a_value_is_told_by_the_same_gap_and_smooth_curves_have_none() -> None:
    chance = random.Random(3)  # noqa: S311 - noise of known size

    def made(deviation: float) -> Workload:
        levels = (1.0, 2.0, 3.0, 4.0, 5.0)
        curves = (
            tuple(CurvePoint(step, level + chance.gauss(0.0, deviation)) for step in range(1, 101)) for level in levels
        )
        trials = tuple(TrialSpec(TrialId(f"t{n}"), 0.0, 100.0, curve, 1.0) for n, curve in enumerate(curves))
        return Workload(trials, (NodeSpec(NodeName("one"), 5.0),))

    assert noise_percent(made(0.0)) == 0.0
    assert noise_percent(made(0.1)) == pytest.approx(5.0, rel=0.2)  # a gap of 2 between the best and the median
    alike = tuple(replace(trial, reports=trial.reports[:1]) for trial in workload().trials)
    assert noise_percent(replace(workload(), trials=alike)) is None


@pytest.mark.parametrize("sign", [1, -1])
def test_a_best_value_counts_whenever_it_was_reported_and_by_whomever(sign: int) -> None:
    early = (CurvePoint(5.0, sign * 0.5), CurvePoint(10.0, sign * 4.0))
    whole = ran((1,), sign)
    overfits = replace(whole.workload.trials[1], reports=early)
    others = (*whole.workload.trials[:1], overfits, *whole.workload.trials[2:])
    seen = replace(whole, workload=replace(whole.workload, trials=others))
    assert best_value_lost_over(1.0, seen) == 0.0
    assert regret_percent(seen) == 0.0
    assert best_value_lost_over(1.0, ran((0,), sign)) == 1.0
    assert best_value_lost_over(1.0, ran((3,), sign)) == 0.0


def test_what_a_search_found_counts_against_as_many_drawn_by_chance() -> None:
    assert beyond_chance_percent(ran(finals=(0.25, 5.0, 6.0))) == pytest.approx(50.0)
    assert beyond_chance_percent(ran(finals=(4.0, 5.0, math.nan))) == pytest.approx(-200.0)


def test_a_run_tells_when_each_report_was_logged() -> None:
    run = simulate(Scenario(workload(), Costs.free()), Default(), keep_times=True)
    assert [tuple(run.reported_at[TrialId(f"t{n}")]) for n in range(5)] == [(5.0, 10.0)] * 5
    assert not any(simulate(Scenario(workload(), Costs.free()), Default()).reported_at.values())


def test_scripts_get_the_measures_by_name_and_parts_of_the_sweeps_as_numbers() -> None:
    sane = replace(workload(), trials=workload().trials[:4])
    setup = given_workload("mine", sane)
    assert isinstance(setup, OwnExperiment)
    plan = ExperimentPlan(replace(setup, measures=tuple(BEST_MODELS.values())), ("default", "promote:rungs=best"))
    default, promote = to_json(run_plans([plan], range(2), lambda _: None, processes=1))["experiments"]
    assert default["regret_percent"] == {"mean": 0.0, "ci95": [0.0, 0.0]}
    assert (default["lost_over_1_percent"], default["lost_over_5_percent"]) == (0.0, 0.0)
    assert default["within_1_percent_at_s"]["mean"] > 0
    assert promote["regret_percent"]["mean"] >= 0
