"""What stands before a program whose metrics are read."""

import pytest

from mlflow_hooks.printed.carried import interpreter
from mlflow_hooks.printed.command import program_of, read_by


@pytest.mark.parametrize("python", [["python3"], interpreter(), ["/usr/bin/python3.12"]])
@pytest.mark.parametrize(
    "program", [("./train",), ("sh", "-c", "x -- y"), ("python", "-m", "mlflow_hooks.printed", "--")]
)
def test_the_program_is_found_again(python: list[str], program: tuple[str, ...]) -> None:
    assert program_of(read_by(python, program)) == program


@pytest.mark.parametrize("command", [(), ("./train", "--", "x"), ("python", "-m", "mlflow_hooks", "--"), ("a",) * 20])
def test_any_other_command_is_a_program_itself(command: tuple[str, ...]) -> None:
    assert program_of(command) == command
