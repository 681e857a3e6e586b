"""What is probably not meant about a sweep's hyperparameters is told before it starts."""

from pathlib import Path
from typing import Any

import pytest
from hera.workflows import Workflow

from hera_specon import Sweep, choice, every, integer, minimize, tpe, uniform
from hera_specon.advice import advice

TRUTH = choice(*(True, False))
HEAD = "import argparse\nfrom argparse import BooleanOptionalAction\np = argparse.ArgumentParser()\n"


def told(folder: Path, argument: str = "", **settings: Any) -> list[str]:  # noqa: ANN401 - whatever a sweep takes
    (folder / "train.py").write_text(f"{HEAD}p.add_argument({argument})\n")
    basics: dict[str, Any] = {"space": {"use-amp": TRUTH}, "search": "grid", "command": ["python", "train.py"]}
    with Workflow(generate_name="s-", entrypoint="s") as w:
        Sweep(name="s", image="x", objective=minimize("loss"), **basics | settings)
    return advice(w.to_dict(), folder)


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("'--use-amp', type=bool", "type=bool takes both for True: say flags={'use-amp': {True: '--use-amp=1'"),
        ("'-a', '--use-amp', default=False, type=bool", "type=bool"),
        (
            "'--use-amp', action='store_true'",
            "takes no value, since it is action=store_true: say flags={'use-amp': '--",
        ),
        ("'--use-amp', action=BooleanOptionalAction", "{True: '--use-amp', False: '--no-use-amp'}"),
        ("'--use-amp', action=argparse.BooleanOptionalAction", "'--no-use-amp'"),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"search": tpe(), "trials": 2}], ids=["grid", "tpe"])
def test_a_truth_value_that_the_program_reads_as_another_is_told_once(
    argument: str, shown: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    (line,) = told(tmp_path, argument, **settings)
    assert shown in line
    assert "hyperparameter 'use-amp' is passed as --use-amp=true or --use-amp=false" in line


@pytest.mark.parametrize(
    ("argument", "settings"),
    [
        ("'--use-amp', type=json.loads", {}),
        ("'--other', type=bool", {}),
        ("'--use-amp', type=bool", {"flags": {"use-amp": {True: "--use-amp=1", False: "--use-amp="}}}),
        ("'--use-amp', action='store_true'", {"flags": {"use-amp": "--use-amp"}}),
        ("'--use-amp', type=bool", {"space": {"use-amp": choice(0, 1)}}),
        ("'--use-amp', type=bool", {"command": ["python", "elsewhere.py"]}),
        ("this is no Python", {}),
    ],
)
def test_a_value_that_is_read_as_it_is_or_a_program_that_cannot_be_read_is_no_news(
    argument: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    assert told(tmp_path, argument, **settings) == []


@pytest.mark.parametrize("settings", [{}, {"arrivals": every(5)}, {"deadline": list(range(1, 21))}], ids=str)
def test_trials_of_a_draw_that_repeat_others_are_named(settings: dict[str, Any], tmp_path: Path) -> None:
    space = {"a": choice(1, 2), "b": integer(1, 3)}
    (line,) = told(tmp_path, space=space, search="random", trials=20, **settings)
    assert line.startswith("14 trials of s repeat the hyperparameters of others (t")
    assert "and 9 more" in line
    assert "only 6 different ones" in line


def test_repeats_are_found_among_thousands_of_trials(tmp_path: Path) -> None:
    (line,) = told(tmp_path, space={"a": integer(1, 1500)}, search="random", trials=1200)
    assert "repeat the hyperparameters of others (t" in line


def test_draws_that_all_differ_are_no_news(tmp_path: Path) -> None:
    assert told(tmp_path, space={"a": uniform(0, 1)}, search="random", trials=20) == []
    assert told(tmp_path, space={"a": uniform(0, 1)}, search=tpe(), trials=20) == []
