"""How hyperparameters stand on a trial's command line."""

import pytest

from hera_specon import SweepError, choice, tpe, uniform
from tests.authoring.built_sweeps import built

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
