"""The file of a sweep that a command line defines."""

from pathlib import Path
from typing import Any

import pytest

from hera_specon import choice, integer, log_uniform, minimize, uniform
from hera_specon.trial_values import trial_values
from hera_specon.workflow_file import load_workflow
from hera_specon.written_sweep import WrittenSweep

SPACE = {"lr": log_uniform(1e-4, 1e-1), "hidden": choice(32, 64), "act": choice("relu", "tanh")}

TRUTHS = (True, False)

FILE = """\
# What it is.
#
# What comes next.

from hera.workflows import Workflow

from hera_specon import Sweep, choice, log_uniform, minimize

with Workflow(generate_name="train-", entrypoint="train") as w:
    Sweep(
        name="train",
        image="my-trainer:1.0",  # on a cluster: an image that has the program and all it needs
        command=["python", "train.py"],
        args=["--epochs=3"],
        space={
            "lr": log_uniform(0.0001, 0.1),
            "hidden": choice(32, 64),
            "act": choice("relu", "tanh"),
        },
        trials=4,
        seed=7,
        objective=minimize("loss"),
    )
"""


def written(**settings: object) -> WrittenSweep:
    basics: dict[str, Any] = {
        "command": ("python", "train.py"),
        "space": SPACE,
        "objective": minimize("loss"),
        "trials": 4,
        "seed": 7,
    }
    return WrittenSweep(**basics | settings)


def container(sweep: WrittenSweep, folder: Path) -> dict[str, Any]:
    file = folder / "sweep.py"
    file.write_text(sweep.source(), encoding="utf-8")
    templates = load_workflow(file).manifest["spec"]["templates"]
    found: dict[str, Any] = next(one["container"] for one in templates if one["name"] == f"{sweep.name}-trial")
    return found


def test_the_file_reads_as_if_written_by_hand() -> None:
    assert written(fixed={"epochs": 3}).source(["What it is.", "", "What comes next."]) == FILE


def test_the_file_has_the_trials_that_are_told_of(tmp_path: Path) -> None:
    file = tmp_path / "sweep.py"
    file.write_text(written().source(), encoding="utf-8")
    values = trial_values(load_workflow(file).manifest, "train")
    assert len(values) == 4
    assert values["t000"].keys() == SPACE.keys()
    arguments = [f"--{name}={value}" for name, value in values["t000"].items()]
    lr, hidden, act = (values["t000"][name] for name in ("lr", "hidden", "act"))
    assert written().words({"lr": float(lr), "hidden": int(hidden), "act": act}) == ["python", "train.py", *arguments]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "src/My_Train.py"), "my-train"),
        (("python", "-m", "pkg.train"), "train"),
        (("bash", "-c", "python fit.py | tee log"), "fit"),
        (("./run.sh",), "run"),
        (("/usr/bin/trainer", "--x"), "trainer"),
        (("_",), "sweep"),
    ],
)
def test_a_sweep_is_called_as_its_program(command: tuple[str, ...], name: str) -> None:
    assert written(command=command).name == name


@pytest.mark.parametrize(("search", "place"), [("random", "{{inputs.parameters.lr}}"), ("tpe", "$(SPECON_PARAM_lr)")])
def test_a_command_may_have_places_for_values(search: str, place: str, tmp_path: Path) -> None:
    command = ("bash", "-c", 'fit {lr} "${lr}" {x} {epochs} {wd}')
    space = {"lr": uniform(0, 1), "wd": choice(1, 2), "hidden": integer(1, 8)}
    sweep = written(command=command, space=space, fixed={"epochs": 3}, search=search)
    found = container(sweep, tmp_path)
    assert found["command"][:2] == ["bash", "-c"]
    assert found["command"][2] == f'fit {place} "${{lr}}" {{x}} 3 {place.replace("lr", "wd")}'
    assert found["args"] == [f"--hidden={place.replace('lr', 'hidden')}"]
    assert sweep.words({"lr": 0.5, "wd": 1, "hidden": 2}) == ["bash", "-c", 'fit 0.5 "${lr}" {x} 3 1', "--hidden=2"]


@pytest.mark.parametrize("search", ["tpe", "cmaes", "QMCSampler", "grid", "random"])
def test_every_search_can_be_written(search: str, tmp_path: Path) -> None:
    space = {"lr": choice(0.1, 0.2), "n": integer(1, 2), "log": integer(1, 2, log=True), "s": uniform(0, 1, step=0.5)}
    assert container(written(search=search, space=space, trials=None if search == "grid" else 3), tmp_path)


def test_what_a_shell_may_hold_is_kept(tmp_path: Path) -> None:
    words = ("sh", "-c", 'echo "a\\b"\n$HOME \u00e9 \U0001f600 {', "x" * 90)
    found = container(written(command=words), tmp_path)
    assert found["command"] == list(words)


def test_truth_values_are_passed_as_the_script_wants_them(tmp_path: Path) -> None:
    flags = {"amp": "--amp", "bias": {True: "--bias", False: "--no-bias"}, "slow": "--slow", "fast": "--fast"}
    space = {"amp": choice(*TRUTHS), "bias": choice(*TRUTHS), "lr": choice(1, 2)}
    sweep = written(space=space, flags=flags, fixed={"slow": False, "fast": True})
    assert sweep.words({"amp": True, "bias": False, "lr": 1}) == [
        "python",
        "train.py",
        "--fast",
        "--amp",
        "--no-bias",
        "--lr=1",
    ]
    assert 'flags={"amp": "--amp", "bias": {True: "--bias", False: "--no-bias"}},' in sweep.source()
    assert container(sweep, tmp_path)["args"] == ["--fast", "--lr={{inputs.parameters.lr}}"]
