import xml.etree.ElementTree as ET
from pathlib import Path

from benchmarks.experiments import markdown, pictures
from benchmarks.experiments.svg import ticks
from controllers.lab.simulation.evaluation import Estimate, ExperimentPlan, run_plans, simulate_seed
from controllers.lab.simulation.experiments.published import EXPERIMENTS


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
    change = [(0.01, Estimate(-0.1, (-0.2, 0.0))), (0.05, Estimate(0.1, None))]
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


def test_ticks_are_round_and_within_the_range() -> None:
    assert ticks(0, 100) == [0, 20, 40, 60, 80, 100]
    assert ticks(-13, 4) == [-10, -5, 0]
    assert ticks(0, 0.05) == [0, 0.01, 0.02, 0.03, 0.04, 0.05]
