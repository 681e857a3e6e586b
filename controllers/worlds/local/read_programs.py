"""Commands of programs whose printed metrics are read, as this machine runs them: by specon's own Python."""

import sys
from collections.abc import Mapping, Sequence

from controllers.worlds.local.processes.pythons import interpreter_of
from controllers.worlds.local.word_scripts import chosen_words
from mlflow_hooks.printed.command import program_of, read_by


def local_command(command: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words that ``command`` comes to, without the shells that a pod needs to put them together.

    Where a reader of printed metrics stands before the program, it is that of this Python, and the word ``python``
    behind it means what it means without one.
    """
    program = program_of(command)
    words = chosen_words(program, env)
    if len(program) == len(command):
        return words
    return tuple(read_by([sys.executable], [interpreter_of(words, env) or words[0], *words[1:]]))
