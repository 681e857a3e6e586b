"""Commands with a reader of printed metrics before them, as this machine runs them."""

import sys

from controllers.core.word_script import words_by_value, wrap
from controllers.worlds.local.read_programs import local_command
from mlflow_hooks.printed.carried import interpreter
from mlflow_hooks.printed.command import OPTIONS, read_by

HERE = (sys.executable, *OPTIONS)


def test_the_reader_is_that_of_our_own_python_whichever_the_pod_would_have() -> None:
    env = {"PATH": "/usr/bin:/bin"}
    for python in (["python3"], interpreter()):
        assert local_command(read_by(python, ["./train", "--x"]), env) == (*HERE, "./train", "--x")


def test_words_of_hyperparameters_are_put_together_before_the_program_starts() -> None:
    line = words_by_value("amp", {"true": ("--amp",), "false": ()})
    command = read_by(["python3"], [*wrap(["./train"], [line]), "--lr=1"])
    env = {"PATH": "/usr/bin:/bin", "amp": "true"}
    assert local_command(command, env) == (*HERE, "./train", "--lr=1", "--amp")


def test_a_program_without_reader_is_as_it_was() -> None:
    assert local_command(("./train", "--x"), {"PATH": "/usr/bin:/bin"}) == ("./train", "--x")
