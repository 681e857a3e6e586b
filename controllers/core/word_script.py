"""A command line whose words depend on a trial's hyperparameters, as a script of a shell. Pure.

Argo and Kubernetes fill values into words, but cannot leave a word out or make several of one: an empty argument is
still an argument. So a shell puts the words together and becomes the program; that is the same process, which gets
every signal.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Final

_MARK: Final = "# hera-specon: words that depend on hyperparameters\n"
_RUN: Final = 'exec "$0" "$@"'
_PRINT: Final = 'printf \'%s\\0\' "$0" "$@"'


def words_by_value(variable: str, words: Mapping[str, Sequence[str]]) -> str:
    """Return the line that adds the words for the value of ``variable``; none for a value that has none."""
    cases = [f'{shlex.quote(value)}) set -- "$@" {shlex.join(given)} ;;' for value, given in words.items() if given]
    return f'case "${variable}" in {" ".join(cases)} esac'


def words_of_value(before: Sequence[str], variable: str, after: Sequence[str]) -> str:
    """Return the line that adds the words of ``variable``'s value one by one, between others."""
    # Without -f the shell would take a star for the names of files.
    return f'set -f; set -- "$@" {shlex.join(before)} ${variable} {shlex.join(after)}; set +f'


def wrap(command: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return the command that runs ``command`` with its arguments and with the words that ``lines`` add."""
    return ["sh", "-c", "\n".join([_MARK.rstrip("\n"), *lines, _RUN]), *command]


def printing(command: Sequence[str]) -> list[str] | None:
    """Return ``command`` so that it prints its words, each with a zero byte behind it, instead of running them.

    None where it is no command that ``wrap`` has made.
    """
    script = command[2] if len(command) > 3 and list(command[:2]) == ["sh", "-c"] else ""  # noqa: PLR2004 - and a program
    if not script.startswith(_MARK) or not script.endswith(_RUN):
        return None
    return ["sh", "-c", script.removesuffix(_RUN) + _PRINT, *command[3:]]


def unwrap(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command that ``wrap`` was given, without the words that its lines add; any other one as it is."""
    return tuple(command if printing(command) is None else command[3:])
