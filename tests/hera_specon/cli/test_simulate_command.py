import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.lab.simulation.experiments.published import EXPERIMENTS
from controllers.lab.simulation.workload_file import write_workload
from hera_specon import formatting
from hera_specon.cli import main


def specon(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments])


def test_the_table_has_ours_and_what_was_published() -> None:
    done = specon("S4", "--policy", "default", "--policy", "specon", "--seeds", "2", "--processes", "1")
    assert done.exit_code == 0, done.output
    assert "S4: 20 mixed trials in [0, 300] s, 4 nodes (2 seeds)" in done.output
    assert "specon:alpha=0.01,interval=30" not in done.output
    assert "published" in done.output
    assert "1421.0" in done.output
    assert "-24.7 %" in done.output


def test_a_papers_own_measures_stand_beside_the_times_in_the_table_and_in_the_figures_for_scripts() -> None:
    arguments = ("D1", "--policy", "default", "--policy", "deadline", "--seeds", "1", "--processes", "1")
    lines = [line.split() for line in specon(*arguments).output.splitlines() if line.strip()]
    assert " ".join(lines[1]).startswith("policy deadlines met change CPU used of allocated makespan change mean")
    assert lines[-1][:6] == ["published", formatting.DASH, "+26.0", "%", "100", "%"]
    _, deadline = json.loads(specon(*arguments, "--json", "-").stdout)["experiments"]
    met, change, used = (deadline["measures"][name]["mean"] for name in deadline["measures"])
    assert lines[-2][:7] == ["deadline", f"{met * 100:.1f}", "%", f"{change * 100:+.1f}", "%", f"{used * 100:.1f}", "%"]


def test_without_policies_those_that_were_published_are_run() -> None:
    done = specon("s1", "--seeds", "1", "--json", "-")
    told = json.loads(done.stdout)["experiments"]
    assert [(one["experiment"], one["policy"]) for one in told] == [("S1", spec) for spec in EXPERIMENTS["S1"].policies]


@pytest.mark.slow
def test_all_means_every_experiment_once(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = specon("S6", "--all", "--policy", "default", "--seeds", "1", "--processes", "1", "--json", str(out))
    assert done.exit_code == 0, done.output
    assert sorted(one["experiment"] for one in json.loads(out.read_text())["experiments"]) == sorted(EVERY_EXPERIMENT)


def test_the_same_command_gives_the_same_figures() -> None:
    arguments = ("S5", "--policy", "default", "--policy", "specon", "--seeds", "2", "--processes", "1", "--json", "-")
    assert specon(*arguments).stdout == specon(*arguments).stdout


def test_a_workload_of_ones_own_is_compared_too(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write_workload(EXPERIMENTS["F1"].workload(0), folder)
    done = specon(str(folder), "--policy", "default", "--policy", "fifo", "--seeds", "1", "--json", "-")
    assert done.exit_code == 0, done.output
    assert [one["policy"] for one in json.loads(done.stdout)["experiments"]] == ["default", "fifo"]


CURVES = "task,config,epoch,seconds,loss\n" + "".join(
    f"{task},{config},{epoch},{100 * epoch},{1 / epoch}\n"
    for task in "xy" for config in range(6) for epoch in (1, 2, 3)
)  # fmt: skip


def test_each_seed_draws_a_sweep_from_a_table_of_learning_curves(tmp_path: Path) -> None:
    (table := tmp_path / "curves.csv").write_text(CURVES)
    options = ("--policy", "default", "--objective", "loss", "--trials", "4", "--nodes", "1")
    done = specon(str(table), *options, "--seeds", "2", "--json", "-", "--processes", "1")
    (told,) = json.loads(done.stdout)["experiments"]
    # Four trials of 300 lone seconds share one node from the start.
    assert told["makespan_s"]["mean"] == pytest.approx(1200.0, rel=0.05)
    assert "4 trials of a task, all at once, 1 node (2 seeds)" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "has loss: name the objective with --objective."),
        (["--objective", "los"], "has no metric 'los', but loss: name the objective"),
        (["--objective", "loss"], "task x has 6 configurations, fewer than 20 trials"),
        (["--objective", "loss", "--nodes", "0"], "'0' is no number of nodes"),
    ],
)
def test_what_is_wrong_with_a_sweep_of_curves_is_said_before_anything_runs(
    tmp_path: Path, options: list[str], told: str
) -> None:
    (table := tmp_path / "curves.csv").write_text(CURVES)
    done = specon(str(table), *options)
    assert done.exit_code == 2
    assert told in done.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["S44"], "No experiment and no file 'S44'; did you mean 'S4'?"),
        (["d1-haf"], "did you mean 'D1-half'?"),
        ([], "Name an experiment (F1, F2"),
        ([], "D1, D1-half, D1-most, D1-crowded, D2, D2-half, D2-most, T1, Q1, A1, A2, A3"),
        ([], "Y3), a workload"),
        (["S4", "s4"], "'S4' is named twice"),
        (["S4", "--policy", "specn"], "did you mean 'specon'?"),
        (["S4", "--policy", "specon:alpha=2"], "specon: alpha must be a number in (0, 1), got 2"),
        (["S4", "--trials", "5"], "--trials 5 says how to draw a sweep from a table of learning curves, but none"),
        (["S4", "--seeds", "0"], "0 is not in the range x>=1"),
        (["S4", "--json", "nowhere/figures.json"], "is in a folder that does not exist"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(arguments: list[str], told: str) -> None:
    done = specon(*arguments)
    assert done.exit_code == 2
    assert told in done.output


ONCE = ("--seeds", "1", "--processes", "1")


def test_a_terminator_ends_the_sweeps_of_a_search_and_is_refused_where_nothing_searches(tmp_path: Path) -> None:
    rows = ((config, epoch, 100 * epoch * (1 + config), 1 / epoch) for config in range(6) for epoch in (1, 2, 3))
    text = "task,config,parameter.rate,epoch,seconds,loss\n"
    text += "".join(f"x,{config},{config},{epoch},{seconds},{loss}\n" for config, epoch, seconds, loss in rows)
    (table := tmp_path / "curves.csv").write_text(text)
    drawn = (str(table), "--policy", "default", "--objective", "loss", "--trials", "6", "--nodes", "1", *ONCE)
    common = (*drawn, "--json", "-")
    whole, cut = (
        json.loads(specon(*common, "--search", "tpe", *stop).stdout)["experiments"][0]
        for stop in ((), ("--stop", "terminator=1"))
    )
    assert cut["makespan_s"]["mean"] < whole["makespan_s"]["mean"]
    assert cut["cut_short"]["mean"] > whole["cut_short"]["mean"] == 0
    told = " ".join(specon(*drawn, "--search", "tpe", "--stop", "terminator=1").output.split())
    assert "Ended early, or never begun, of the trials: " in told
    assert "are of whole trainings" in told
    refused = specon(*common, "--stop", "terminator=1")
    assert (refused.exit_code, "--stop in" in refused.output, "search=tpe()" in refused.output) == (2, True, True)


def test_the_help_has_examples() -> None:
    assert "specon simulate S4 --policy default --policy specon --seeds 30" in specon("--help").output
