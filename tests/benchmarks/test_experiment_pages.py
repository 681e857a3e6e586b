import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.experiments import ahead, markdown, pictures
from benchmarks.experiments.ablation import AblationPlan
from benchmarks.experiments.svg import ticks
from controllers.lab.simulation.evaluation import (
    ExperimentPlan,
    MeanOverSeeds,
    PolicySummary,
    RunFigures,
    run_plans,
    simulate_seed,
)
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.lab.simulation.experiments.published import EXPERIMENTS
from controllers.policies import Ahead


def silent(runs: int) -> None:
    assert runs > 0


def test_an_experiments_table_has_ours_and_what_was_published_in_italics() -> None:
    experiment = EXPERIMENTS["S1"]
    table = markdown.experiment(
        experiment, run_plans([ExperimentPlan(experiment, experiment.policies)], [0], silent, 1)
    )
    lines = table.splitlines()
    assert lines[0] == "### S1: 20 VAE, one every 50 s, 4 nodes"
    assert len({line.count("|") for line in lines[2:]}) == 1
    assert lines[5].startswith("| *published* | *1260.0* |")


def test_pictures_are_valid_and_hold_what_they_show(tmp_path: Path) -> None:
    order = ExperimentPlan(EXPERIMENTS["S4"], ("default", "specon"))
    runs = dict(zip(order.policies, simulate_seed(order, 0), strict=True))
    bars = [pictures.Bars(name, pictures.in_order(run.result)) for name, run in runs.items()]
    change = [(0.01, MeanOverSeeds(-0.1, (-0.2, 0.0))), (0.05, MeanOverSeeds(0.1, None))]
    drawn = {
        "bars": pictures.completion_bars("a < b", bars),
        "nodes": pictures.trials_over_nodes("nodes", runs),
        "cpu": pictures.cpu_over_time("cpu", runs),
        "sensitivity": pictures.sensitivity("s", "alpha", change, [(0.01, -0.072)]),
    }
    for name, canvas in drawn.items():
        canvas.save(tmp_path / f"{name}.svg")
    roots = {name: ET.parse(tmp_path / f"{name}.svg").getroot() for name in drawn}  # noqa: S314 - we wrote it
    rects = {name: len(root.findall(".//{*}rect")) for name, root in roots.items()}
    assert rects["bars"] == 1 + 2 * 20 + 2
    assert rects["sensitivity"] == 1 + 2 + 1 + 2
    assert len(roots["cpu"].findall(".//{*}polygon")) == 2 * 20
    written = {text.text for text in roots["nodes"].iter() if text.text}
    assert {"worker-1", "worker-4", "default", "specon", "20"} <= written


def summary(policy: str, mean_s: float, makespan_changes: tuple[float, ...], mean_change: float) -> PolicySummary:
    runs = tuple(
        RunFigures(
            makespan_s=100.0,
            mean_completion_s=mean_s,
            median_completion_s=mean_s,
            makespan_change=change,
            mean_change=mean_change,
            faster_share=0.5,
            worst_loser=1.25 + place,
            bound_ratio=1.125,
            mean_bound_ratio=1.5,
            moves=place,
            resizes=0,
            measures={"unusable": 0.02},
        )
        for place, change in enumerate(makespan_changes)
    )
    return PolicySummary("S1", policy, policy, policy == "default", runs)


def comparison(makespan_changes: tuple[float, ...], mean_change: float) -> ahead.Comparison:
    unchanged = tuple(0.0 for _ in makespan_changes)
    return ahead.Comparison(
        summary("default", 60.0, unchanged, 0.0),
        summary("ahead", 60.0, makespan_changes, mean_change),
        summary("shortest-remaining", 50.0, unchanged, 0.0),
    )


def test_a_row_in_which_the_policy_is_worse_beyond_noise_is_marked() -> None:
    found = {
        "S1": comparison((0.010, 0.011), -0.2),
        "S2": comparison((-0.1, 0.2), -0.2),
        "S3": comparison((-0.100, -0.101), 0.1),
    }
    worse, noise, mean = ahead.comparison_table(found).splitlines()[2:]
    assert worse.startswith("| **S1: 20 VAE, one every 50 s, 4 nodes** | **worse: makespan** | +1.0")
    assert noise.startswith("| S2: ")
    assert "worse" not in noise
    assert "**worse: mean**" in mean
    assert " | 1.20 ±0.00 | 50.0 ±0.0 % | 1.75 ±6.35 | 2.25 | 0.5 |" in noise
    told = ahead.tally(found.values())
    assert "Of 3 experiments, the makespan is shorter in 1 and longer in 1." in told
    assert "Of 3 experiments, the mean is shorter in 2 and longer in 1." in told


def test_the_page_of_ahead_has_every_experiment_and_every_ablation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ExperimentPlan] = []

    def run(plans: list[ExperimentPlan], seeds: range, done: Callable[[int], None]) -> tuple[PolicySummary, ...]:
        done(len(plans))
        asked.extend(plans)
        unchanged = tuple(0.0 for _ in seeds)
        return tuple(summary(policy, 60.0, unchanged, 0.0) for plan in plans for policy in plan.policies)

    monkeypatch.setattr(ahead, "run_plans", run)
    ahead.ahead(tmp_path, range(2), silent)
    page = (tmp_path / "ahead.md").read_text()
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        "# Ahead, beside the default scheduler",
        "## Every experiment",
        "## What lies above the bound",
        "## What each rule is worth",
        "## Totals unknown",
        "## Reports that tell less than the truth",
    ]
    first = page.split("## What lies")[0]
    assert all(
        f"\n| {name}: {setup.title.replace('|', markdown.BAR)} |" in first for name, setup in ahead.EXPERIMENTS.items()
    )
    left_out = EVERY_EXPERIMENT.keys() - ahead.EXPERIMENTS.keys()
    assert left_out == {"C1-random", "C1-tpe", "Z1", "Z2", "Z3", "Z4", "Y1", "Y2", "Y3"}
    ablations = [(plan.experiment.id, plan.without) for plan in asked if isinstance(plan, AblationPlan)]
    assert {without for _, without in ablations} - {None} == set(Ahead.needs)
    assert {experiment for experiment, without in ablations if without} == set(ahead.ABLATED)
    assert "over 2 seeds. Left without" in page


def test_ticks_are_round_and_within_the_range() -> None:
    assert ticks(0, 100) == [0, 20, 40, 60, 80, 100]
    assert ticks(-13, 4) == [-10, -5, 0]
    assert ticks(0, 0.05) == [0, 0.01, 0.02, 0.03, 0.04, 0.05]
