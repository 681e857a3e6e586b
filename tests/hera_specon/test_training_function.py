import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hera.workflows import DAG, Workflow

from hera_specon import Sweep, SweepError, choice, integer, minimize, uniform
from mlflow_hooks import contract

SETTINGS: dict[str, Any] = {
    "image": "trainer:1",
    "space": {"lr": uniform(0, 1), "hidden": integer(1, 9), "activation": choice("relu", "tanh")},
    "trials": 2,
    "objective": minimize("loss"),
}


@Sweep.script(**SETTINGS)
def train_it(lr: float, hidden: int, activation: str, data: str = "digits") -> str:
    """Train."""
    import json  # noqa: PLC0415 - a script gets the function alone

    if hidden < 0:
        return "early"
    print(json.dumps([lr, hidden, activation, data]))  # noqa: T201 - what the test reads
    return "done"


def trial_of(workflow: Workflow, name: str) -> dict[str, Any]:
    templates = {template["name"]: template for template in workflow.to_dict()["spec"]["templates"]}
    found: dict[str, Any] = templates[name]
    return found


def run(source: str, params: dict[str, Any], folder: Path) -> list[object]:
    script = folder / "script.py"
    script.write_text(source, encoding="utf-8")
    environment = {**os.environ, contract.ENV_PARAMS: json.dumps(params)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    printed: list[object] = json.loads(done.stdout)
    return printed


def test_a_trial_calls_the_function_with_typed_hyperparameters(tmp_path: Path) -> None:
    with Workflow(generate_name="train-", entrypoint="train-it") as w:
        train_it()
    source = trial_of(w, "train-it-trial")["script"]["source"].replace("{{inputs.parameters.data}}", "it is 7")
    point = {"lr": 0.5, "hidden": 3, "activation": "relu"}
    assert run(source, point, tmp_path) == [0.5, 3, "relu", "it is 7"]


def test_the_functions_other_arguments_are_inputs_of_the_sweep() -> None:
    with Workflow(generate_name="train-", entrypoint="main") as w, DAG(name="main"):
        train_it(arguments={"data": "faces"})
    assert trial_of(w, "train-it")["inputs"] == {"parameters": [{"name": "data", "default": "digits"}]}
    (task,) = trial_of(w, "main")["dag"]["tasks"]
    assert task["arguments"] == {"parameters": [{"name": "data", "value": "faces"}]}


def test_outside_a_workflow_the_function_is_still_the_function() -> None:
    assert train_it(0.1, -1, "relu") == "early"
    assert train_it.__doc__ == "Train."


def test_a_function_decorated_inside_a_workflow_is_part_of_it() -> None:
    with Workflow(generate_name="train-", entrypoint="fit") as w:

        @Sweep.script(name="fit", **SETTINGS)
        def anything(lr: float, hidden: int, activation: str) -> None:
            print(lr, hidden, activation)  # noqa: T201 - a stand-in for training

    assert "def anything" in trial_of(w, "fit-trial")["script"]["source"]
    assert "Sweep.script" not in trial_of(w, "fit-trial")["script"]["source"]


def test_heras_runner_can_call_the_function_too() -> None:
    with Workflow(generate_name="train-", entrypoint="train-it") as w:
        Sweep.script(constructor="runner", **SETTINGS)(train_it.wrapped_function)
    assert trial_of(w, "train-it-trial")["script"]["args"][:3] == ["-m", "hera.workflows.runner", "-e"]


def test_a_function_without_one_of_the_hyperparameters_is_refused() -> None:
    with pytest.raises(SweepError, match="'activation', 'hidden'"):

        @Sweep.script(**SETTINGS)
        def fit(lr: float) -> None:
            print(lr)  # noqa: T201 - a stand-in for training


def test_a_function_with_nameless_arguments_is_refused() -> None:
    with pytest.raises(SweepError, match="'rest'"):

        @Sweep.script(**SETTINGS)
        def fit(lr: float, hidden: int, activation: str, *rest: str) -> None:
            print(lr, hidden, activation, rest)  # noqa: T201 - a stand-in for training


def test_what_is_no_def_is_refused() -> None:
    with pytest.raises(SweepError, match="def"):
        Sweep.script(name="fit", **SETTINGS)(lambda lr, hidden, activation: (lr, hidden, activation))
