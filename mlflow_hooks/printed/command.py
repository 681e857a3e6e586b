"""What stands before a program's command so that its printed metrics are read. Pure."""

from collections.abc import Sequence
from typing import Final

MODULE: Final = "mlflow_hooks.printed"
_END: Final = "--"
# -P: a file random.py in the program's folder is none of the reader's modules.
OPTIONS: Final = ("-P", "-m", MODULE, _END)
_MOST_BEFORE: Final = 12


def read_by(interpreter: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return the command that runs ``command`` and reads what it prints, by a Python started as ``interpreter``."""
    return [*interpreter, *OPTIONS, *command]


def program_of(command: Sequence[str]) -> tuple[str, ...]:
    """Return the program that ``read_by`` was given; any other command as it is."""
    before = list(command[:_MOST_BEFORE])
    for end in range(len(OPTIONS), len(before) + 1):
        if before[end - 2 : end] == [MODULE, _END]:
            return tuple(command[end:])
    return tuple(command)
