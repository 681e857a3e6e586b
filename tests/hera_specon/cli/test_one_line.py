"""A sweep that the command line defines: what is run, written and refused."""

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from controllers.core.errors import SweepInterrupted
from controllers.core.policy import Policy
from controllers.core.results import RunResult, TrialResult
from controllers.local_run.order import LocalSettings
from controllers.local_run.run import LocalRun
from controllers.local_run.services import Screen
from controllers.policies.registry import parse_policy
from hera_specon.assignments import read_assignments
from hera_specon.cli import main
from hera_specon.cli.backend import Backend, Workflow
from hera_specon.trial_values import trial_values
from hera_specon.workflow_file import load_workflow
from mlflow_hooks.points import Point
from tests.hera_specon.report.example_run import write_example_run

TRAIN = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--epochs", type=int, default=3)
raise SystemExit("this file was run")
"""


@dataclass
class Runs:
    """Stands in for what runs sweeps: keeps what it was given, and has a trial print and log."""

    folder: Path
    printed: str = ""
    logged: dict[str, float] = field(default_factory=dict)
    succeeded: bool = True
    interrupted: bool = False
    workflows: list[Workflow] = field(default_factory=list)
    settings: list[LocalSettings] = field(default_factory=list)

    def backend(self) -> Backend:
        return Backend(lambda path: load_workflow(path).manifest, parse_policy, self.run)

    def run(
        self,
        workflow: Mapping[str, Any],
        source: Path,
        policies: Sequence[Policy[Any]],
        settings: LocalSettings,
        screen: Screen,
    ) -> LocalRun:
        del source, screen
        self.workflows.append(workflow)
        self.settings.append(settings)
        part = settings.state_dir / "runs" / "train-1" / "01-default"
        (part / "logs").mkdir(parents=True, exist_ok=True)
        (part / "logs" / "t000.log").write_text(self.printed)
        if self.logged:
            (part / "state" / "t000").mkdir(parents=True, exist_ok=True)
            points = [Point(name, value, 0, 0).encode() for name, value in self.logged.items()]
            (part / "state" / "t000" / "points.jsonl").write_bytes(b"".join(points))
        if self.interrupted:
            message = "interrupted"
            raise SweepInterrupted(message)
        trial = TrialResult("t000", 0.0, 1.0, "node-1", 0, 1, 0.1, self.succeeded)
        results = (RunResult(policies[0].name, (trial,)),)
        folder = write_example_run(self.folder / f"state-{len(self.workflows)}")
        return LocalRun(folder, results, "http://127.0.0.1:5000")


Specon = Callable[[str], Result]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.fixture
def specon(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Specon:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    return lambda line: CliRunner().invoke(main, shlex.split(line), obj=runs.backend())


def trial_of(workflow: Workflow, name: str = "train") -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in workflow["spec"]["templates"] if one["name"] == f"{name}-trial")
    return found


def words(workflow: Workflow, name: str = "train") -> list[str]:
    container = trial_of(workflow, name)["container"]
    return [*container["command"], *container["args"]]


def test_a_script_and_its_hyperparameters_are_a_sweep(specon: Specon, runs: Runs) -> None:
    result = specon("run train.py lr=log:1e-4:1e-1 hidden=32,64 epochs=3 --trials 5 --seed 7 --minimize loss")

    assert result.exit_code == 0, result.stderr
    (workflow,) = runs.workflows
    assert words(workflow)[:3] == ["python", "train.py", "--epochs=3"]
    assert len(trial_values(workflow, "train")) == 5
    assert runs.settings[0].seed == 7
    annotations = trial_of(workflow)["metadata"]["annotations"]
    assert annotations["hera-specon.io/objective"] == "loss"
    assert "5 trials (drawn at random): lr=log_uniform(0.0001, 0.1), hidden=choice(32, 64)" in result.stderr
    assert "the first runs: python train.py --epochs=3 --lr=" in result.stderr


@pytest.mark.parametrize(
    ("line", "trials"),
    [
        ("hidden=32,64,128 lr=0.1,0.2", 6),
        ("hidden=32,64,128 lr=0.1,0.2 --trials 4", 4),
        ("hidden=32,64,128 lr=0.1,0.2 --trials 50", 6),
        ("hidden=1:3", 3),
        ("lr=0:0.5", 20),
        ("lr=0:0.5 --trials 3", 3),
        ("hidden=1:3 --search random --trials 5", 5),
        ("lr=0:0.5 --search tpe --trials 5", 5),
    ],
)
def test_choices_are_a_grid_and_ranges_a_draw(specon: Specon, runs: Runs, line: str, trials: int) -> None:
    assert specon(f"run train.py {line} --maximize accuracy").exit_code == 0
    (workflow,) = runs.workflows
    (step,) = next(one for one in workflow["spec"]["templates"] if one["name"] == "train")["steps"][0]
    assert len(step["withItems"]) == trials


def test_a_command_takes_the_values_where_it_has_places_for_them(specon: Specon, runs: Runs) -> None:
    result = specon("run lr=1,2 hidden=3,4 --minimize loss -- python -m pkg.train {lr} --minimize x -- y")

    assert result.exit_code == 0, result.stderr
    assert words(runs.workflows[0]) == [
        *("python", "-m", "pkg.train", "{{inputs.parameters.lr}}", "--minimize", "x", "--", "y"),
        "--hidden={{inputs.parameters.hidden}}",
    ]


@pytest.mark.parametrize(
    ("text", "mode", "command"),
    [
        ("echo", 0o644, ["sh", "train.sh"]),
        ("#!/usr/bin/env bash\necho", 0o644, ["/usr/bin/env", "bash", "train.sh"]),
        ("#!/bin/bash\necho", 0o755, ["./train.sh"]),
        ("echo", 0o755, ["sh", "train.sh"]),
    ],
)
def test_a_script_of_a_shell_runs_by_its_own_shell(
    specon: Specon, runs: Runs, tmp_path: Path, text: str, mode: int, command: list[str]
) -> None:
    script = tmp_path / "train.sh"
    script.write_text(text)
    script.chmod(mode)
    assert specon("run train.sh lr=1,2 --minimize loss").exit_code == 0
    assert trial_of(runs.workflows[0])["container"]["command"] == command


def test_the_file_that_is_written_defines_the_very_same_sweep(specon: Specon, runs: Runs, tmp_path: Path) -> None:
    line = "run train.py lr=log:1e-4:1e-1 hidden=32:256:32 epochs=3 --trials 6 --seed 7 --minimize loss"
    saved = specon(f"{line} --save sweep.py")
    assert saved.exit_code == 0, saved.stderr
    assert "wrote the sweep to sweep.py" in saved.stderr
    assert f"#   specon {line}" in (tmp_path / "sweep.py").read_text()

    assert specon("run sweep.py").exit_code == 0
    assert runs.workflows[0] == runs.workflows[1]


def test_init_writes_the_same_file_and_runs_nothing(specon: Specon, runs: Runs, tmp_path: Path) -> None:
    line = "train.py lr=log:1e-4:1e-1 --trials 6 --minimize loss"
    assert specon(f"init {line}").exit_code == 0
    assert runs.workflows == []
    by_init = (tmp_path / "sweep.py").read_text()
    assert specon(f"run {line} --save sweep.py").exit_code == 0
    assert (tmp_path / "sweep.py").read_text() == by_init


def test_init_fills_in_what_is_left_out(specon: Specon, tmp_path: Path) -> None:
    result = specon("init train.py --save mine.py")
    assert result.exit_code == 0, result.stderr
    text = (tmp_path / "mine.py").read_text()
    assert '"lr": log_uniform(0.001, 0.1)' in text
    assert 'objective=minimize("loss")' in text
    assert "specon run mine.py" in result.stdout
    assert specon("init").exit_code == 0
    assert 'command=["python", "train.py"]' in (tmp_path / "sweep.py").read_text()


@pytest.mark.parametrize("command", ["init", "run"])
def test_a_file_that_says_something_else_is_not_overwritten(
    specon: Specon, runs: Runs, tmp_path: Path, command: str
) -> None:
    (tmp_path / "sweep.py").write_text("mine")
    result = specon(f"{command} train.py lr=1,2 --minimize loss --save sweep.py")
    assert (result.exit_code, runs.workflows) == (2, [])
    assert "sweep.py is there already" in result.stderr
    assert (tmp_path / "sweep.py").read_text() == "mine"


def test_init_overwrites_by_force(specon: Specon, tmp_path: Path) -> None:
    (tmp_path / "sweep.py").write_text("mine")
    assert specon("init train.py lr=1,2 --force").exit_code == 0
    assert "choice(1, 2)" in (tmp_path / "sweep.py").read_text()


def test_without_an_objective_one_trial_shows_what_it_could_be(specon: Specon, runs: Runs, tmp_path: Path) -> None:
    runs.printed = "Epoch 1: loss: 0.9, accuracy: 0.1, widgets: 7\nEpoch 2: loss: 0.4, accuracy: 0.8, widgets: 8\n"

    result = specon("run train.py lr=log:1e-4:1e-1 --nodes 2 --trials 9")

    assert result.exit_code == 2
    (workflow,) = runs.workflows
    assert len(trial_values(workflow, "train")) == 1
    lines = [line.split("#")[0].strip() for line in result.stderr.splitlines()]
    begins = "specon run train.py lr=log:1e-4:1e-1 --nodes 2 --trials 9"
    assert lines[-4:] == [
        f"{begins} --maximize accuracy",
        f"{begins} --minimize loss",
        f"{begins} --minimize widgets",
        f"{begins} --maximize widgets",
    ]
    assert "# loss was 0.4 in the end" in result.stderr
    assert not list((tmp_path / ".specon").rglob("*.log"))


def test_what_a_trial_logs_counts_before_what_it_prints(specon: Specon, runs: Runs) -> None:
    runs.printed, runs.logged = "lost: 3", {"val/f1": 0.5, "train/f1": 0.6, "specon.cpu_seconds": 1.0}
    result = specon("run lr=1,2 -- python train.py")
    assert (result.exit_code, len(runs.workflows)) == (2, 1)
    lines = [line.split("#")[0].strip() for line in result.stderr.splitlines()]
    assert lines[-2:] == [
        "specon run lr=1,2 --maximize val/f1 -- python train.py",
        "specon run lr=1,2 --maximize train/f1 -- python train.py",
    ]


def test_a_first_trial_that_is_broken_off_tells_what_it_has(specon: Specon, runs: Runs) -> None:
    runs.printed, runs.interrupted = "loss: 3\n", True
    result = specon("run train.py lr=1,2")
    assert result.exit_code == 2
    assert "--minimize loss" in result.stderr


def test_a_first_trial_that_fails_is_told_with_its_last_lines(specon: Specon, runs: Runs) -> None:
    runs.printed, runs.succeeded = "loss: 3\nValueError: no such data\n", False
    result = specon("run train.py lr=1,2")
    assert result.exit_code == 2
    assert "The first trial failed" in result.stderr
    assert "ValueError: no such data" in result.stderr


def test_a_first_trial_that_tells_nothing_says_what_to_do(specon: Specon) -> None:
    result = specon("run train.py lr=1,2")
    assert result.exit_code == 2
    assert "Print one, as in `loss: 0.31`" in result.stderr


def test_a_training_script_alone_is_not_run_but_told_of_the_line(specon: Specon, runs: Runs) -> None:
    result = specon("run train.py")
    assert (result.exit_code, runs.workflows) == (2, [])
    assert "defines no Workflow named w" in result.stderr
    assert "specon run train.py lr=log:0.001:0.1 hidden=32,64,128 --minimize loss" in result.stderr
    assert "this file was run" not in result.stderr


def test_an_option_that_the_script_lacks_is_warned_of(specon: Specon, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN + "parser.parse_args()\n")
    result = specon("run train.py width=1,2 --minimize loss")
    assert "Warning: train.py has no option --width: it has --lr, --hidden, --epochs" in result.stderr


def test_json_on_stdout_stays_alone_there(specon: Specon) -> None:
    result = specon("run train.py lr=1,2 --minimize loss --json -")
    assert json.loads(result.stdout)["runs"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "Missing argument 'FILE'"),
        ("lr=1,2", "Name the program"),
        ("train.py lr=1", "nothing to sweep"),
        ("train.py other.py lr=1,2", "unexpected extra argument (other.py)"),
        ("train.py lr=1,2 -- python other.py", "name one FILE, or a command after --"),
        ("nowhere.py lr=1,2", "File 'nowhere.py' does not exist"),
        ("data.txt lr=1,2", "say how it is started"),
        ("flow.py lr=1,2", "defines a sweep, with hyperparameters of its own"),
        ("flow.yaml lr=1,2", "defines a sweep, with hyperparameters of its own"),
        ("flow.py --trials 3", "--trials is for a sweep in one line"),
        ("flow.py --minimize x", "--minimize is for a sweep in one line"),
        ("flow.py --save x.py", "--save is for a sweep in one line"),
        ("train.py lr=1,2 --minimize a --maximize b", "one objective"),
        ("train.py lr=1,2 --minimize a=b", "'='"),
        ("train.py lr=1:2:3:4 --minimize a", "LOW:HIGH:STEP"),
        ("train.py lr=0:0.5 --search grid --minimize a", "finitely many values"),
        ("train.py lr=0:0.5 --search guess --minimize a", "guess"),
        ("train.py lr=1,2 --trials 0 --minimize a", "--trials"),
        ("train.py lr=1,2 --minimize a --save train.py", "would overwrite the program"),
        ("train.py lr=1,2 x=\udcff --minimize a", "no text in UTF-8"),
    ],
)
def test_what_makes_no_sense_is_named_and_nothing_starts(
    specon: Specon, runs: Runs, tmp_path: Path, line: str, told: str
) -> None:
    (tmp_path / "data.txt").write_text("1 2 3")
    (tmp_path / "flow.yaml").write_text("kind: Workflow")
    (tmp_path / "flow.py").write_text("from hera.workflows import Workflow\nwith Workflow() as w:\n    pass\n")
    result = specon(f"run {line}")
    assert (result.exit_code, runs.workflows, result.stdout) == (2, [], "")
    assert told in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def page_commands() -> list[str]:
    """Return the command lines of the page about sweeps in one line."""
    page = Path(__file__).parents[3] / "docs" / "how-to" / "sweep-a-script.md"
    blocks = page.read_text(encoding="utf-8").split("```console\n")[1:]
    return [line for block in blocks for line in block.split("```")[0].splitlines()]


@pytest.mark.parametrize("line", page_commands())
def test_every_command_of_the_page_is_understood(specon: Specon, tmp_path: Path, line: str) -> None:
    (tmp_path / "train.sh").write_text("echo")
    result = specon(line.removeprefix("specon "))
    assert result.exit_code == 0, result.stderr


def test_every_form_of_a_value_on_the_page_is_understood() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "sweep-a-script.md").read_text(encoding="utf-8")
    forms = re.findall(r"`([a-z]+=[^`{\"]+)`", page.partition("## Write the values")[2].partition("## Run any")[0])
    assert len(forms) > 10
    for form in forms:
        read_assignments([form])


def test_a_printed_name_that_mlflow_does_not_take_is_kept_under_the_nearest_and_said(
    specon: Specon, runs: Runs, tmp_path: Path
) -> None:
    result = specon("run train.py lr=1,2 --maximize Acc@1 --save sweep.py")
    assert result.exit_code == 0, result.stderr
    assert (
        result.stderr.count("MLflow takes no metric of the name 'Acc@1': what is printed of it is kept as 'Acc_1'") == 1
    )
    assert trial_of(runs.workflows[0])["metadata"]["annotations"]["hera-specon.io/objective"] == "Acc_1"
    assert "maximize('Acc_1')" in (tmp_path / "sweep.py").read_text().replace('"', "'")


def test_ordinary_prints_offer_their_metrics_and_no_counters(specon: Specon, runs: Runs) -> None:
    runs.printed = "epoch 1 loss 0.9\nTrain Epoch: 2 [6400/60000 (11%)]\tLoss: 0.4\n * Acc@1 76.1 Acc@5 92.9\n"
    result = specon("run train.py lr=1,2")
    assert "--minimize loss " in result.stderr
    assert "--maximize Acc_1 " in result.stderr
    assert "poch" not in result.stderr
