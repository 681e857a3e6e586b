"""The everyday sweeps are what their titles say, the same for everybody who draws the same seed."""

import math
import re
import statistics
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from controllers.lab.simulation.evaluation import ExperimentPlan, simulate_seed
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT, everyday, experiment_named
from controllers.lab.simulation.experiments.arrivals import Poisson
from controllers.lab.simulation.experiments.everyday import EVERYDAY_EXPERIMENTS
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import Workload

every_sweep = pytest.mark.parametrize("setup", EVERYDAY_EXPERIMENTS, ids=lambda setup: setup.id)
SEEDS = range(20)


def workload(name: str, seed: int = 3) -> Workload:
    return EVERY_EXPERIMENT[name].workload(seed)


def test_they_are_known_by_name() -> None:
    assert [setup.id for setup in EVERYDAY_EXPERIMENTS] == [f"A{number}" for number in range(1, 26)]
    assert experiment_named("a14") is EVERYDAY_EXPERIMENTS[13]


@every_sweep
def test_every_trial_finds_room(setup: OwnExperiment) -> None:
    (run,) = simulate_seed(ExperimentPlan(setup, ("default",)), 0)
    assert all(trial.succeeded for trial in run.result.trials)


@pytest.mark.parametrize(
    ("name", "trials", "request_cores", "most", "node_cores"),
    [
        ("A1", 60, 1.0, 16.0, 16.0),
        ("A2", 100, 4.0, 16.0, 16.0),
        ("A3", 100, 4.0, 4.0, 16.0),
        ("A4", 24, 0.05, 1.0, 1.0),
        ("A25", 6, 1.0, 16.0, 16.0),
    ],
)
def test_all_come_at_once(name: str, trials: int, request_cores: float, most: float, node_cores: float) -> None:
    drawn = workload(name)
    assert len(drawn.trials) == trials
    assert {trial.submitted_at for trial in drawn.trials} == {0.0}
    assert {trial.cpu for trial in drawn.trials} == {request_cores}
    assert {trial.speedup.max_cores for trial in drawn.trials} == {most}
    assert [node.cpu for node in drawn.nodes] == [node_cores] * 4


def test_lengths_are_lognormal_and_neither_steps_nor_their_cost_alone_tell_them() -> None:
    trials = [trial for seed in SEEDS for trial in workload("A1", seed).trials]
    lengths = [math.log(trial.work_s) for trial in trials]
    assert math.exp(statistics.median(lengths)) == pytest.approx(120.0, rel=0.1)
    assert statistics.stdev(lengths) == pytest.approx(1.0, rel=0.1)
    steps = [math.log(len(trial.reports)) for trial in trials]
    costs = [length - count for length, count in zip(lengths, steps, strict=True)]
    assert abs(statistics.correlation(steps, costs)) < 0.1


def test_what_fits_and_what_can_be_used_changes_nothing_else_of_the_trials() -> None:
    wide, narrow = workload("A2"), workload("A3")
    assert narrow.nodes == wide.nodes
    assert narrow.trials == tuple(replace(one, speedup=narrow.trials[0].speedup) for one in wide.trials)


@pytest.mark.parametrize("name", ["A5", "A6", "A7", "A8", "A9", "A10", "A13", "A14", "A17", "A19", "A21", "A22", "A23"])
def test_the_trials_of_s5_come_when_they_do_there_and_have_as_much_work(name: str) -> None:
    assert EVERY_EXPERIMENT[name].title.startswith("S5")
    ours, theirs = workload(name).trials, workload("S5").trials
    assert [(t.id, t.submitted_at, t.work_s) for t in ours] == [(t.id, t.submitted_at, t.work_s) for t in theirs]


def test_nodes_slow_down_differ_or_fill_up_as_told() -> None:
    usual = workload("S5").nodes
    assert [{node.contention for node in workload(name).nodes} for name in ("A5", "A6")] == [{0.05}, {0.15}]
    unlike = [node.speed for node in workload("A7").nodes]
    assert sorted(unlike) == [0.6, 0.8, 1.0, 1.6]
    assert [node.speed for node in workload("A7", 4).nodes] != unlike
    crowded = workload("A10")
    assert {trial.memory for trial in crowded.trials} == {usual[0].memory / 4}
    assert {trial.cpu for trial in workload("A23").trials} == {usual[0].cpu / 4}


def test_trials_can_use_as_many_cores_as_told() -> None:
    assert [{t.speedup.max_cores for t in workload(name).trials} for name in ("A8", "A9")] == [{8.0}, {4.0}]
    for name in ("A19", "A20"):
        for trial in workload(name).trials:
            assert trial.speedup.speed(16) / trial.speedup.speed(4) == pytest.approx(4**0.85)
            assert trial.speedup.speed(0.5) == trial.speedup.speed(1) / 2


def test_the_demo_has_the_shape_of_the_demo() -> None:
    written = (Path(__file__).parents[5] / "workflows" / "demo.yaml").read_text(encoding="utf-8")
    drawn = workload("A11")
    assert [f"{trial.submitted_at:.0f}s" for trial in drawn.trials] == re.findall(r"delay: (\d+s)", written)
    assert set(re.findall(r"steps: '(\d+)'", written)) <= {str(steps) for steps in everyday.DEMO_STEPS}
    assert {len(t.reports) for seed in SEEDS for t in workload("A11", seed).trials} == set(everyday.DEMO_STEPS)
    assert "cpu: 50m" in written
    assert {trial.cpu for trial in drawn.trials} == {0.05}
    assert [node.cpu for node in drawn.nodes] == [0.45] * 4
    total = statistics.fmean(sum(trial.work_s for trial in workload("A11", seed).trials) for seed in SEEDS)
    assert total == pytest.approx(200.0, rel=0.1)


def test_a_tenth_of_those_that_come_one_after_the_other_are_ten_times_as_long() -> None:
    draw = everyday.HeavyTailed(40, 60.0, 1.0, 16.0, arrivals=Poisson(30.0)).workload
    ratios = [long.work_s / one.work_s for one, long in zip(draw(3).trials, workload("A12").trials, strict=True)]
    assert sorted(ratios) == pytest.approx([1.0] * 36 + [10.0] * 4)
    gaps = [workload("A12", seed).trials[-1].submitted_at / 39 for seed in SEEDS]
    assert statistics.fmean(gaps) == pytest.approx(30.0, rel=0.1)


@pytest.mark.parametrize(
    ("name", "of", "silent"), [("A13", "S5", 9), ("A14", "S5", 30), ("A15", "A1", 18), ("A16", "A1", 60)]
)
def test_as_many_trials_as_told_never_tell_their_total(name: str, of: str, silent: int) -> None:
    drawn = workload(name)
    assert sum(trial.steps_total is None for trial in drawn.trials) == silent
    assert replace(drawn, trials=tuple(replace(trial, steps_told=None) for trial in drawn.trials)) == workload(of)


@pytest.mark.parametrize(("name", "of"), [("A17", "S5"), ("A18", "A1")])
def test_steps_take_unlike_long_and_cpu_seconds_are_told_late(name: str, of: str) -> None:
    noisy, told = workload(name), workload(of)
    assert noisy.nodes == told.nodes
    varying = []
    for trial, other in zip(noisy.trials, told.trials, strict=True):
        assert (trial.id, trial.work_s, len(trial.reports)) == (other.id, other.work_s, len(other.reports))
        assert trial.reports[-1].work_s == pytest.approx(trial.work_s)
        assert trial.cpu_every_s == 10.0
        marks = [0.0, *(report.work_s for report in trial.reports)]
        steps = [after - before for before, after in pairwise(marks)]
        varying.append(statistics.stdev(steps) / statistics.fmean(steps))
    assert statistics.fmean(varying) == pytest.approx(0.2, rel=0.1)


def test_a_third_of_the_trials_stop_before_the_steps_that_they_told() -> None:
    stopped = []
    for trial, whole in zip(workload("A24").trials, workload("A1").trials, strict=True):
        assert trial.steps_total == len(whole.reports)
        assert trial.reports == whole.reports[: len(trial.reports)]
        assert trial.work_s == trial.reports[-1].work_s
        if len(trial.reports) < len(whole.reports):
            stopped.append(len(trial.reports) / len(whole.reports))
    assert len(stopped) == 18
    assert 0.15 < min(stopped) < max(stopped) < 0.85


def test_starts_and_moves_cost_as_told() -> None:
    assert EVERY_EXPERIMENT["A21"].costs == Costs.argo()
    slow = EVERY_EXPERIMENT["A22"].costs
    assert slow.leave_s + slow.restore_s == 60.0
    assert EVERY_EXPERIMENT["A4"].costs == EVERY_EXPERIMENT["A11"].costs == Costs.local()


def test_the_clairvoyant_knows_what_trials_do_not_tell() -> None:
    told, untold = (
        simulate_seed(ExperimentPlan(EVERY_EXPERIMENT[name], ("shortest-remaining",)), 1)[0].result.trials
        for name in ("S5", "A14")
    )
    assert untold == told
