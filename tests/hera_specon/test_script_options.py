"""What a training script's own source says of its options."""

from pathlib import Path

import pytest

from hera_specon.script_options import suggested_assignments, truth_flags, unknown_options

SCRIPT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--batch-size", "-b", type=int, default=64)
parser.add_argument("--dropout", type=float, default=0.5)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    return file


def test_options_that_the_script_does_not_have_are_told(script: Path) -> None:
    (told,) = unknown_options(script, ["lr", "batch_size", "epochs"])
    assert "has no option --batch_size: it has --lr, --batch-size, --dropout, --epochs" in told
    assert told.endswith("did you mean batch-size=?")


def test_an_abbreviation_is_an_option(script: Path) -> None:
    assert list(unknown_options(script, ["batch", "drop"])) == []


@pytest.mark.parametrize("text", ["import fire", SCRIPT.replace("parse_args", "parse_known_args"), "not Python ("])
def test_of_scripts_that_may_take_anything_nothing_is_told(script: Path, text: str) -> None:
    script.write_text(text)
    assert list(unknown_options(script, ["wrong"])) == []


def test_suggestions_go_by_the_options_of_the_script(script: Path) -> None:
    assert suggested_assignments(script) == ("lr=log:0.001:0.1", "batch-size=32,64,128")


def test_a_script_that_tells_nothing_gets_an_example(tmp_path: Path) -> None:
    assert suggested_assignments(tmp_path / "none.py") == ("lr=log:1e-4:1e-1", "hidden=32,64,128")


def test_truth_values_are_passed_as_argparse_reads_them(script: Path) -> None:
    script.write_text(
        "parser.add_argument('--amp', action='store_true')\n"
        "parser.add_argument('--bias', action=argparse.BooleanOptionalAction)\n"
        "parser.add_argument('--fast', type=bool)\n"
        "parser.add_argument('--own', type=truth)\n"
    )
    assert truth_flags(script, ["amp", "bias", "fast", "own", "none"]) == {
        "amp": "--amp",
        "bias": {True: "--bias", False: "--no-bias"},
        "fast": {True: "--fast=1", False: "--fast="},
    }
