"""How hyperparameters stand on a trial's command line."""

import pytest

from hera_specon import SpaceError, SweepError, choice, tpe, uniform
from mlflow_hooks.contract import ENV_PARAMS
from tests.hera_specon.built_sweeps import built, environment

SPACE = {"lr": uniform(0.0, 1.0), "width": choice(8, 16)}


def args(**settings: object) -> list[str]:
    found: list[str] = built(space=SPACE, **settings)["vae-trial"]["container"]["args"]
    return found[-2:]


def test_a_hyperparameter_is_a_flag_of_its_name_unless_its_author_says_otherwise() -> None:
    assert args() == ["--lr={{inputs.parameters.lr}}", "--width={{inputs.parameters.width}}"]
    assert args(flags={"lr": "--optim.lr={}", "width": "model.width={}"}) == [
        "--optim.lr={{inputs.parameters.lr}}",
        "model.width={{inputs.parameters.width}}",
    ]


def test_what_a_search_finds_stands_in_the_same_places() -> None:
    assert args(flags={"lr": "--weight-decay={}"}, search=tpe()) == [
        "--weight-decay=$(SPECON_PARAM_lr)",
        "--width=$(SPECON_PARAM_width)",
    ]


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        ({"depth": "--depth={}"}, "'depth', which is no hyperparameter"),
        ({"lr": "--lr"}, "one {} for the value"),
        ({"lr": "--lr={} {}"}, "one {} for the value"),
        ({"lr": "--lr={{workflow.name}}{}"}, "one {} for the value"),
        ({"lr": "--lr=$(HOME){}"}, "one {} for the value"),
    ],
)
def test_flags_that_make_no_sense_are_refused(flags: dict[str, str], shown: str) -> None:
    with pytest.raises(SweepError, match=shown.replace("{", "\\{").replace("}", "\\}")):
        built(space=SPACE, flags=flags)


def test_names_with_dots_and_dashes_are_flags_as_they_are_and_inputs_that_argo_allows() -> None:
    space = {"optim.lr": choice(0.1), "weight-decay": choice(0.5)}
    templates = built(space=space, search="grid")
    assert templates["vae-trial"]["container"]["args"][-2:] == [
        "--optim.lr={{inputs.parameters.optim_lr}}",
        "--weight-decay={{inputs.parameters.weight_decay}}",
    ]
    (step,) = templates["vae"]["steps"][0]
    (item,) = step["withItems"]
    assert item == {"trial": "t000", "optim_lr": "0.1", "weight_decay": "0.5"}
    declared = {one["name"] for one in templates["vae-trial"]["inputs"]["parameters"]}
    assert declared == {"trial", "optim_lr", "weight_decay"}
    given = environment(templates["vae-trial"])[ENV_PARAMS]
    assert given == '{"optim.lr": {{inputs.parameters.optim_lr}}, "weight-decay": {{inputs.parameters.weight_decay}}}'
    searched = built(space=space, search=tpe())["vae-trial"]["container"]
    assert searched["args"][-2:] == [
        "--optim.lr=$(SPECON_PARAM_optim_lr)",
        "--weight-decay=$(SPECON_PARAM_weight_decay)",
    ]
    notes = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in searched["env"] if "valueFrom" in one}
    assert notes["SPECON_PARAM_optim_lr"] == "metadata.annotations['hera-specon.io/param-optim.lr']"


@pytest.mark.parametrize("names", [("a.b", "a-b"), ("a_b", "a.b")])
def test_names_that_would_be_one_input_are_refused(names: tuple[str, str]) -> None:
    with pytest.raises(SpaceError, match="too alike"):
        built(space=dict.fromkeys(names, choice(1)), search="grid")
