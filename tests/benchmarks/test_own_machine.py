"""One's own machine: every tool trains the same trials, what they noted is read, and the table compares fairly."""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.disturbed_machine.load import NONE
from benchmarks.own_machine import __main__ as own_machine
from benchmarks.own_machine import making
from benchmarks.own_machine.making import environment, make
from benchmarks.own_machine.runs import Run, RunFile, Task, tasks
from benchmarks.own_machine.stamps import Stamps, Trial, read_stamps
from benchmarks.own_machine.tables import PAGE, Group, grouped, tables
from benchmarks.own_machine.tools import OWN, TOOLS, Order
from benchmarks.own_machine.train import Training
from benchmarks.own_machine.watching import Watched
from benchmarks.own_machine.workloads import WORKLOADS
from controllers.core.errors import SpeconError
from hera_specon.workflow_file import load_workflow

REPOSITORY = Path(__file__).parents[2]
INSTALLED = [name for name, tool in TOOLS.items() if not tool.lacks]
QUIET = Watched(0, 0.0, 20.0, 10**8, 0.01, 0.0, 0.01)


def task(tool: str = "xargs", seed: int = 1, workload: str = "minutes", beside: str = NONE) -> Task:
    return Task(workload, "full", beside, seed, tool)


def run(of: Task, seconds: float, ends: tuple[float, ...] = (5.0, 9.0), wanted: int = 2, killed: int = 0) -> Run:
    trials = tuple(
        Trial(f"trial-{place}", 1.0, 2.0, end, 1 + killed, killed, 4.0, 0.5) for place, end in enumerate(ends)
    )
    return Run(of, 2, wanted, replace(QUIET, seconds=seconds), trials)


def cells(group: Group) -> dict[str, dict[str, list[str]]]:
    """The cells by tool and column; several columns may have one name."""
    header, _, *rows = [line.strip("| ").split(" | ") for line in group.table.splitlines()]
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        for name, cell in zip(header, row, strict=True):
            found.setdefault(row[0], {}).setdefault(name, []).append(cell.strip())
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)  # Ray alone takes two minutes beside many other tests
def test_every_installed_tool_trains_the_same_trials_to_their_end_and_a_table_compares_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.own_machine", "--sizes", "small", "--rounds", "1"]
    command += ["--workload", "minutes", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = RunFile(tmp_path / "runs.json").runs
    assert sorted(made.task.tool for made in runs) == sorted(INSTALLED)
    for made in runs:
        assert made.complete, made
        assert len(made.trials) == 4
        assert made.first_step is not None
        assert 0 < made.first_step < max(made.ends) < made.whole
        assert made.watched.peak > 10**7
        assert made.cpu_s > 0
    losses = [{trial.name: trial.loss for trial in made.trials} for made in runs]
    assert all(of_tool == losses[0] for of_tool in losses)
    assert all(TOOLS[tool].title in done.stdout for tool in INSTALLED)
    assert all(f"LEFT OUT: {name}" in done.stdout for name in TOOLS if name not in INSTALLED)


def test_xargs_trains_all_trials_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    made = make(Task("unlike", "small", NONE, 1, "xargs"), tmp_path)
    assert made.complete
    assert made.wanted == len(made.trials) == 4
    assert made.killed == 0
    assert made.after_last is not None
    assert 0 <= made.after_last < made.whole


def test_a_later_call_makes_only_the_runs_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Task] = []

    def noted(of: Task, _: Path) -> Run:
        made.append(of)
        return run(of, 10.0)

    monkeypatch.setattr(own_machine, "make", noted)
    wanted = list(tasks(["minutes"], ["xargs", OWN], 2, "small", NONE))
    own_machine.measure(wanted[:3], RunFile(tmp_path / "runs.json"), tmp_path, print)
    own_machine.measure(wanted, RunFile(tmp_path / "runs.json"), tmp_path, print)
    assert made == wanted
    assert RunFile(tmp_path / "runs.json").runs == [run(of, 10.0) for of in wanted]


def test_a_tool_that_does_not_run_here_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = replace(TOOLS["xargs"], command=lambda _: [sys.executable, "-c", "raise SystemExit(7)"])
    monkeypatch.setattr(making, "TOOLS", {**TOOLS, "xargs": broken})
    file = RunFile(tmp_path / "runs.json")
    with pytest.raises(SpeconError, match="xargs does not train four tiny trials"):
        own_machine.measure([task("xargs")], file, tmp_path, print)
    assert file.runs == []
    lost = make(Task("unlike", "small", NONE, 1, "xargs"), tmp_path)
    assert (lost.complete, lost.trials, lost.makespan, lost.killed) == (False, (), None, 0)
    assert "0 OF 4 TRIALS ENDED, EXIT CODE 7" in own_machine.told(lost)


def test_each_tool_begins_a_round_as_often_as_another() -> None:
    order = list(tasks(["minutes"], list(TOOLS), len(TOOLS), "full", NONE))
    rounds = [order[place : place + len(TOOLS)] for place in range(0, len(order), len(TOOLS))]
    assert all({one.tool for one in of} == set(TOOLS) and len({one.seed for one in of}) == 1 for of in rounds)
    assert Counter(of[0].tool for of in rounds) == dict.fromkeys(TOOLS, 1)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_sweep_of_ours_has_the_trials_of_the_list(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = WORKLOADS[name].points(3)
    Order(name, "full", 3, 2, (), ("--memory=0",)).write(tmp_path)
    monkeypatch.chdir(tmp_path)
    manifest = load_workflow(REPOSITORY / "benchmarks" / "own_machine" / "sweep.py").manifest
    templates = {template["name"]: template for template in manifest["spec"]["templates"]}
    ((step,),) = templates["own-machine"]["steps"]
    items = [{key: float(item[key]) for key in ("lr", "work")} for item in step["withItems"]]
    assert items == list(points)
    assert len({tuple(point.values()) for point in points}) == WORKLOADS[name].trials


def test_another_round_draws_other_trials_and_the_longest_of_the_unlike_ones_is_not_the_first() -> None:
    assert WORKLOADS["minutes"].points(1) == WORKLOADS["minutes"].points(1) != WORKLOADS["minutes"].points(2)
    unlike = WORKLOADS["unlike"].lengths
    assert len(unlike) == WORKLOADS["unlike"].trials
    assert max(unlike) > 10 * min(unlike)
    assert unlike[0] != max(unlike)


def test_training_that_goes_on_from_a_checkpoint_comes_to_the_same_loss(tmp_path: Path) -> None:
    whole, half, rest = (Training(0.1, 0.1, 0) for _ in range(3))
    losses = [whole.step(step) for step in range(6)]
    assert [half.step(step) for step in range(3)] == losses[:3]
    half.save(tmp_path)
    rest.load(tmp_path)
    assert [rest.step(step) for step in range(3, 6)] == losses[3:]
    assert whole.loss() == rest.loss() < losses[0]


def test_what_was_killed_is_told_from_what_left_and_went_on(tmp_path: Path) -> None:
    with Stamps(tmp_path, "moved") as stamps:
        stamps.stepped()
    with Stamps(tmp_path, "moved") as stamps:
        stamps.stepped()
        stamps.ended(0.25)
    (tmp_path / "killed.jsonl").write_text('{"what": "began", "at": 100.0}\n{"what": "stepped", "at": 101.5}\n')
    killed, moved = read_stamps(tmp_path, 99.0)
    assert killed == Trial("killed", 1.0, 2.5, None, 1, 1, 0.0, None)
    assert (moved.attempts, moved.killed, moved.loss) == (2, 0, 0.25)
    assert moved.stepped is not None
    assert moved.ended is not None
    assert moved.began <= moved.stepped <= moved.ended


def test_each_tool_is_set_beside_the_best_one_by_hand_in_pairs_with_a_range() -> None:
    seconds = {"xargs": (10.0, 20.0), "joblib": (12.0, 22.0), OWN: (8.0, 16.4)}
    runs = [run(task(tool, seed), of[seed - 1]) for tool, of in seconds.items() for seed in (1, 2)]
    (group,) = grouped(runs)
    found = cells(group)
    assert found["`xargs -P`"]["whole command"] == ["15.0 s"]
    assert found["`xargs -P`"]["x best by hand"][0] == "best"
    assert found["joblib"]["x best by hand"][0].startswith("1.15 (0.")
    assert found["`specon run`"]["x best by hand"][0].startswith("0.81 (0.69 to 0.9")
    assert found["`specon run`"]["makespan"] == ["8.0 s"]
    assert found["`specon run`"]["mean completion"] == ["7.0 s"]


def test_a_tool_that_lost_trials_is_not_the_best_and_the_table_says_what_it_lost() -> None:
    lost = run(task("xargs"), 1.0, (0.5, 0.6), wanted=3, killed=1)
    (group,) = grouped([lost, run(task("joblib"), 12.0), run(task(OWN), 6.0)])
    found = cells(group)
    assert found["joblib"]["x best by hand"][0] == "best"
    assert found["`specon run`"]["x best by hand"][0] == "0.50"
    assert found["`xargs -P`"]["whole command"] == [""]
    assert (found["`xargs -P`"]["killed"], found["`xargs -P`"]["unfinished"]) == (["2"], ["1"])


def test_every_mark_in_the_page_has_its_table_and_small_runs_stay_out_of_it() -> None:
    of_load = run(task("xargs", beside="busy"), 30.0)
    small = run(replace(task("xargs", workload="unlike"), sizes="small"), 1.0)
    made = tables([run(task("xargs"), 10.0), of_load, small])
    assert set(re.findall(r"<!-- table: (\S+) -->", PAGE.read_text("utf-8"))) == set(made)
    assert "10.0 s" in made["own-machine-minutes"]
    assert "30.0 s" not in made["own-machine-minutes"]
    assert "| minutes | busy | `xargs -P` |" in made["own-machine-disturbed"]
    assert made["own-machine-unlike"] == ""


def test_what_is_not_installed_is_named_with_what_installs_it() -> None:
    lacking = replace(TOOLS["joblib"], package="no_such_package_at_all")
    assert lacking.lacks == "the package no_such_package_at_all is not installed (pip install joblib)"
    assert (
        replace(TOOLS["xargs"], program="no-such-program-at-all").lacks == "there is no program no-such-program-at-all"
    )


def test_every_tool_gets_one_thread_for_each_trial_and_no_server_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere")
    found = environment()
    assert found["OMP_NUM_THREADS"] == "1"
    assert not any(name.startswith("MLFLOW_") for name in found)
