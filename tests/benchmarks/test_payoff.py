"""The payoff for real: which runs are made in which order, what is kept, when a run is repeated, and its tables."""

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.experiments.markdown import with_tables
from benchmarks.payoff.__main__ import measure
from benchmarks.payoff.cpu import SpeedProbe
from benchmarks.payoff.figures import summaries
from benchmarks.payoff.on_this_machine import ThisMachine
from benchmarks.payoff.pages import PAGES, disturbed, tables
from benchmarks.payoff.plan import ON_THIS_MACHINE, PLANS, Plan, Task, tasks
from benchmarks.payoff.records import DISTURBED_CORES, Delivered, Run, RunFile
from controllers.core.results import RunResult, TrialResult
from controllers.policies.registry import parse_policy
from controllers.worlds.local.workflow import read_workflow
from hera_specon.workflow_file import load_workflow

POLICIES = ("default", "ahead")
QUIET = Delivered(nodes=1.7, services=0.1, others=0.02, stolen=0.01, probe_s=0.02)
NOISY = Delivered(nodes=1.5, services=0.1, others=DISTURBED_CORES, stolen=0.05, probe_s=0.02)
TINY = """
from hera.workflows import Resources, Workflow
from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="tiny-", entrypoint="tiny") as w:
    Sweep(
        name="tiny",
        image="trainer:1",
        command=["python", "-m", "workflows.jobs.pytorch.mnist", "--work=2"],
        space={"steps": choice(20, 40)},
        search="grid",
        objective=minimize("loss"),
        resources=Resources(cpu_request="50m"),
        state_claim="state",
    )
"""


def task(seed: int = 1, policy: str = "default", sweep: str = "demo") -> Task:
    return Task("local", sweep, seed, policy)


def run(of: Task, ends: Sequence[float] = (60.0, 100.0), delivered: Delivered = QUIET) -> Run:
    trials = tuple(TrialResult(f"demo.t{n}", 0.0, end, "node-1", n, 1 + n, 0.5) for n, end in enumerate(ends))
    return Run(of, "2026-11-22 12:00:00", 130.0, RunResult(of.policy, trials), 170.0, 80.0, 50.0, delivered)


class Scripted:
    """Makes runs that got ``delivered`` one after another, and then quiet ones."""

    def __init__(self, *delivered: Delivered) -> None:
        self.made: list[Task] = []
        self._delivered = list(delivered)

    def make(self, task: Task) -> Run:
        self.made.append(task)
        return run(task, delivered=self._delivered.pop(0) if self._delivered else QUIET)


def measured(maker: Scripted, wanted: Sequence[Task], file: RunFile) -> None:
    measure(maker, wanted, file, 2, Console(quiet=True))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.world}-{plan.workers}")
def test_another_seed_draws_other_trials_of_every_sweep(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in plan.sweeps.values():
        drawn = []
        for seed in ("1", "2"):
            monkeypatch.setenv("SWEEP_SEED", seed)
            manifest = load_workflow(file).manifest
            drawn.append([trial.step.args for trial in read_workflow(manifest, "s", "s", {}).trials()])
        assert len(drawn[0]) == len(drawn[1])
        assert drawn[0] != drawn[1]
    assert parse_policy(plan.policies[0]).name == "default"


def test_more_trials_come_at_once_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWEEP_SEED", raising=False)
    manifest = load_workflow(ON_THIS_MACHINE.sweeps["all at once"]).manifest
    requests = [trial.step.cpu for trial in read_workflow(manifest, "s", "s", {}).trials()]
    assert len(requests) == 24
    assert ON_THIS_MACHINE.nodes * int(ON_THIS_MACHINE.cores / requests[0]) == 16


def test_a_tenth_of_the_trials_of_unlike_lengths_is_much_longer() -> None:
    manifest = load_workflow(ON_THIS_MACHINE.sweeps["unlike lengths"]).manifest
    steps = sorted(
        int(re.search(r"--steps=(\d+)", " ".join(trial.step.args))[1])  # type: ignore[index]  # each has one
        for trial in read_workflow(manifest, "s", "s", {}).trials()
    )
    assert len(steps) == 20
    assert steps[-2] > 3 * steps[-3]


def test_all_policies_run_in_each_seed_and_begin_with_another_one() -> None:
    ordered = [(one.seed, one.policy) for one in tasks(ON_THIS_MACHINE, ["demo"], [1, 2], ["a", "b", "c"])]
    assert ordered == [(1, "b"), (1, "c"), (1, "a"), (2, "c"), (2, "a"), (2, "b")]


def test_a_later_invocation_makes_only_what_is_missing(tmp_path: Path) -> None:
    wanted = list(tasks(ON_THIS_MACHINE, ["demo"], [1, 2], POLICIES))
    measured(Scripted(), wanted[:3], RunFile(tmp_path / "a" / "runs.json"))
    later = Scripted()
    file = RunFile(tmp_path / "a" / "runs.json")
    measured(later, wanted, file)
    assert later.made == wanted[3:]
    assert [one.task for one in file.runs] == wanted
    assert RunFile(tmp_path / "a" / "runs.json").runs == file.runs


def test_a_disturbed_run_is_made_again_and_both_are_kept(tmp_path: Path) -> None:
    maker, file = Scripted(NOISY), RunFile(tmp_path / "runs.json")
    measured(maker, [task()], file)
    assert maker.made == [task(), task()]
    assert [one.disturbed for one in file.runs] == [True, False]
    assert file.chosen() == file.runs[1:]
    assert disturbed(file.chosen()) == []


def test_a_run_that_stays_disturbed_is_told_and_not_dropped(tmp_path: Path) -> None:
    worse, bad = replace(NOISY, stolen=0.5), replace(NOISY, stolen=0.2)
    maker, file = Scripted(worse, bad, worse), RunFile(tmp_path / "runs.json")
    measured(maker, [task()], file)
    assert len(file.runs) == 3
    assert file.chosen() == [file.runs[1]]
    assert len(disturbed(file.chosen())) == 1


def test_figures_pair_each_run_with_the_baselines_of_its_seed() -> None:
    runs = [run(task(1)), run(task(1, "ahead"), (54.0, 80.0)), run(task(2)), run(task(2, "ahead"), (66.0, 100.0))]
    default, ahead = summaries(ON_THIS_MACHINE, "demo", [*runs, run(task(3, "ahead"))])
    assert (default.baseline, default.seeds, ahead.seeds) == (True, 2, 2)
    assert [one.makespan_change for one in ahead.runs] == pytest.approx([-0.2, 0.0])
    assert [one.worst_loser for one in ahead.runs] == pytest.approx([0.9, 1.1])
    assert [one.bound_ratio for one in ahead.runs] == pytest.approx([1.0, 1.25])


def test_at_equal_speed_a_run_is_no_longer_only_because_the_machine_was_slower() -> None:
    slow = replace(QUIET, probe_s=2 * QUIET.probe_s)
    _, ahead = summaries(ON_THIS_MACHINE, "demo", [run(task()), run(task(policy="ahead"), (60.0, 150.0), slow)])
    (figures,) = ahead.runs
    assert figures.makespan_change == pytest.approx(0.5)
    assert figures.measures["makespan_at_equal_speed"] == pytest.approx(-0.25)


def test_the_probe_counts_the_cpu_of_its_own_work_and_not_the_time_that_it_waits() -> None:
    with SpeedProbe() as probe:
        time.sleep(0.3)
    assert 0 < probe.seconds < 0.3


def test_every_mark_in_the_pages_has_its_table() -> None:
    made = tables([run(task()), run(task(policy="ahead"), (50.0, 80.0))])
    marks = {mark for page in PAGES for mark in re.findall(r"<!-- table: (\S+) -->", page.read_text("utf-8"))}
    assert marks == set(made)
    assert "-20.0 %" in made["payoff-local"]
    assert made["local-demo"].count("\n") == 4
    assert made["cluster-ten-VAE"] == ""


def test_a_table_takes_the_place_of_the_one_before_and_an_empty_one_of_none() -> None:
    page = "before\n\n<!-- table: a -->\n\n| old |\n|---|\n\nafter\n<!-- table: b -->\n\n| kept |\n|---|\n"
    made = {"a": "| new |\n|---|\n", "b": ""}
    once = with_tables(page, made)
    assert once == "before\n\n<!-- table: a -->\n\n| new |\n|---|\n\nafter\n<!-- table: b -->\n\n| kept |\n|---|\n"
    assert with_tables(once, made) == once
    with pytest.raises(KeyError):
        with_tables(page, {"a": ""})


@pytest.mark.slow
@pytest.mark.pytorch
def test_a_run_on_this_machine_is_kept_with_its_bounds_and_what_it_got(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TINY)
    plan = replace(ON_THIS_MACHINE, sweeps={"tiny": tmp_path / "tiny.py"}, nodes=2)
    made = ThisMachine(plan, tmp_path).make(Task("local", "tiny", 1, "ahead"))
    assert [trial.succeeded for trial in made.result.trials] == [True, True]
    # The bound takes trials for single threads; loading torch, most of what these short ones do, takes several.
    assert 0 < made.makespan_bound_s <= 2.0 * made.result.makespan_s
    assert 0 < made.mean_bound_s <= 2.0 * made.result.mean_completion_s
    assert 0 < made.delivered.nodes < 2
    assert made.delivered.others is not None
    file = RunFile(tmp_path / "runs.json")
    file.append(made)
    assert RunFile(tmp_path / "runs.json").runs == [made]
