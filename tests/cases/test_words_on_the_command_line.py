"""Hyperparameters that are no --name=value: bare flags, pairs of flags and lists, as a program gets them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core.parameters import point_annotations
from controllers.core.word_script import wrap
from controllers.worlds.local.word_scripts import chosen_words
from controllers.worlds.local.workflow import read_workflow
from hera_specon import Sweep, SweepError, choice, integer, minimize, tpe, uniform, when
from hera_specon.flags import FlagForm
from mlflow_hooks.contract import ENV_PARAM

SHOW = "import json, sys; print(json.dumps(sys.argv[1:]))"
TRUTH = choice(*(True, False))
SPACE = {
    "lr": choice(0.1),
    "use-bias": TRUTH,
    "amp": TRUTH,
    "hidden": choice("64 64", "128", "*"),
    "opt": choice("adam", "sgd"),
}
FLAGS: dict[str, FlagForm] = {
    "lr": ["--lr", "{}"],
    "use-bias": "--use-bias",
    "amp": {True: "--amp", False: "--no-amp"},
    "hidden": ["--hidden", "{*}"],
    "opt": {"adam": ["--opt", "{}"], "sgd": None},
}
POINT = {"lr": 0.1, "use-bias": True, "amp": False, "hidden": "64 64", "opt": "adam"}
WORDS = ["--bare", "it's", "", "--lr", "0.1", "--use-bias", "--no-amp", "--hidden", "64", "64", "--opt", "adam"]
OTHER = {"lr": 0.1, "use-bias": False, "amp": True, "hidden": "*", "opt": "sgd"}
OTHER_WORDS = ["--bare", "it's", "", "--lr", "0.1", "--amp", "--hidden", "*"]


def template(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever a sweep takes
    with Workflow(generate_name="s-", entrypoint="s") as w:
        Sweep(
            name="s",
            image="x",
            command=[sys.executable, "-c", SHOW],
            args=["--bare", "it's", ""],
            objective=minimize("loss"),
            **{"space": SPACE, "search": "grid", **settings},
        )
    found: dict[str, Any] = next(one for one in w.to_dict()["spec"]["templates"] if one["name"] == "s-trial")
    return found


def in_a_pod(trial: Mapping[str, Any], point: dict[str, Any], folder: Path) -> list[str]:
    """Return what a program gets in a pod: Argo has filled in inputs, Kubernetes what stands in ``$(...)``."""
    texts = {name.replace("-", "_"): text for name, text in _texts(point).items()}
    filled = json.loads(
        re.sub(
            r"\{\{inputs\.parameters\.(\w+)\}\}",
            lambda found: json.dumps(texts.get(found[1], ""))[1:-1],
            json.dumps(trial["container"]),
        )
    )
    env = {one["name"]: one["value"] for one in filled["env"] if "value" in one}
    env |= {ENV_PARAM + name: text for name, text in texts.items()}
    words = [re.sub(r"\$\((\w+)\)", lambda m: env.get(m[1], m[0]), w) for w in filled["command"] + filled["args"]]
    (folder / "a file").touch()
    env["PATH"] = os.environ["PATH"]
    shown = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, check=True).stdout
    found: list[str] = json.loads(shown)
    return found


def _texts(point: dict[str, Any]) -> dict[str, str]:
    return {name: text if isinstance(text, str) else json.dumps(text) for name, text in point.items()}


@pytest.mark.parametrize("search", ["grid", tpe()])
@pytest.mark.parametrize(("point", "words"), [(POINT, WORDS), (OTHER, OTHER_WORDS)])
def test_a_pod_gets_the_words_of_its_trial_and_no_empty_ones(
    search: object, point: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    assert in_a_pod(template(flags=FLAGS, search=search, trials=24), point, tmp_path) == words


@pytest.mark.parametrize("search", ["grid", tpe()])
@pytest.mark.parametrize(("point", "words"), [(POINT, WORDS), (OTHER, OTHER_WORDS)])
def test_a_process_of_this_machine_gets_the_same_words_without_a_shell(
    search: object, point: dict[str, Any], words: list[str]
) -> None:
    trial = template(flags=FLAGS, search=search, trials=24)
    inputs = {name.replace("-", "_"): text for name, text in _texts(point).items()}
    parameters = [
        {"name": one["name"], "value": inputs.get(one["name"], "t0")} for one in trial["inputs"]["parameters"]
    ]
    manifest = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "w"},
        "spec": {
            "entrypoint": "main",
            "templates": [
                {
                    "name": "main",
                    "steps": [[{"name": "a", "template": "s-trial", "arguments": {"parameters": parameters}}]],
                },
                trial,
            ],
        },
    }
    (step,) = read_workflow(manifest, "w", "uid", {}).expand({}, ()).pods
    env = {**os.environ, **step.environment}
    if search != "grid":
        notes = point_annotations(tuple(point.items()))
        env |= {name: notes[note] for name, note in step.env_from.items() if note in notes}
    given = tuple(re.sub(r"\$\((\w+)\)", lambda m: env.get(m[1], m[0]), word) for word in step.command + step.args)
    assert chosen_words(given, env) == (sys.executable, "-c", SHOW, *words)


def test_flags_of_a_fixed_number_of_words_need_no_shell() -> None:
    plain = template(flags={"lr": ["--lr", "{}"], "opt": "optim={}"})["container"]
    assert plain["command"] == [sys.executable, "-c", SHOW]


def test_a_command_of_another_kind_is_left_as_it_is() -> None:
    own = ("sh", "-c", 'exec "$0" "$@"', "python", "train.py")
    assert chosen_words(own, dict(os.environ)) == own
    assert chosen_words(("python",), dict(os.environ)) == ("python",)


def test_a_program_that_cannot_be_asked_for_its_words_is_run_as_it_is() -> None:
    broken = tuple(wrap(["python"], ["exit 3"]))
    assert chosen_words(broken, dict(os.environ)) == broken


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        ({"amp": {True: "--amp"}}, "no words for 'false'; None passes nothing"),
        ({"amp": {True: "--amp", False: None, "x": "--x"}}, "words for 'x', which it never is"),
        ({"amp": {True: 3, False: None}}, "not 3"),
        ({"amp": []}, "not []"),
        ({"opt": "--opt"}, "a bare flag for truth values"),
        ({"lr": "--lr {}"}, "not '--lr {}'"),
        ({"hidden": "--hidden={*}"}, "{*} passes the words"),
        ({"hidden": ["--hidden", "{*}", "{}"]}, "{*} passes the words"),
        ({"lr": ["$(HOME)", "{}"]}, "$(HOME)"),
        ({"lr": {0.1: "$$"}}, "$$"),
    ],
)
def test_forms_of_flags_that_make_no_sense_are_refused(flags: dict[str, Any], shown: str) -> None:
    with pytest.raises(SweepError) as caught:
        template(flags=flags)
    assert shown in str(caught.value)


def test_words_for_each_value_need_values_that_end() -> None:
    space = {"lr": uniform(0, 1), "n": integer(1, 3)}
    with pytest.raises(SweepError, match="no end of them"):
        template(space=space, search="random", trials=2, flags={"lr": {0.5: "--half"}})
    assert template(space={"n": integer(1, 2)}, flags={"n": {1: "-v", 2: ["-v", "-v"]}})


def test_a_flag_that_matters_only_at_times_is_left_out_where_it_does_not() -> None:
    space = {"opt": choice("sgd", "adam"), "nesterov": when("opt", "sgd", TRUTH, otherwise=False)}
    assert "--nesterov" in template(space=space, flags={"nesterov": "--nesterov"})["container"]["command"][2]
