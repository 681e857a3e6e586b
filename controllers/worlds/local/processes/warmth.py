"""What a fork server has done before its first fork, and for which attempts that is what they would have done too.

A fork saves an attempt the seconds of its imports. It is worth nothing where it changes what the program does: so the
environment is compared whole, and the imports are the program's own (see ``preload``).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controllers.worlds.local.environment import common
from controllers.worlds.local.processes.interpreter import program_of
from controllers.worlds.local.processes.preload import Plans
from controllers.worlds.local.processes.pythons import is_this_python

_MOST_SERVERS: Final = 3
"""Each takes up to half a gigabyte for what it has imported."""


@dataclass(frozen=True)
class Warmth:
    """An environment, and what was imported in it.

    ``steps`` are names of modules in the order of their import, and settings of the environment between them, such as
    ``KERAS_BACKEND=torch``.
    """

    env: Mapping[str, str]
    steps: tuple[str, ...] = ()

    def fits(self, wanted: "Warmth") -> bool:
        """Return whether a program that wants another warmth would not notice that it has this one."""
        return wanted.steps[: len(self.steps)] == self.steps and common(wanted.env) == common(self.env)


def warmth_of(
    plans: Plans, command: Sequence[str], env: Mapping[str, str], cwd: Path, source: str | None = None
) -> Warmth | None:
    """Return what a fork server may do ahead for a command; None where it is no Python program of this interpreter.

    Args:
        plans: remembers what programs begin with.
        command: of the attempt.
        env: its whole environment.
        cwd: its folder.
        source: the text of the program where that is in no file yet.
    """
    if not is_this_python(command, env):
        return None
    if source is None and program_of(command) is None:
        return None
    return Warmth(common(env), plans.of(command, cwd, env, source))


def most_wanted(wishes: Iterable[Warmth | None]) -> tuple[Warmth, ...]:
    """Return what the most attempts want, each once, the most wanted first; three at most."""
    wanted = [((tuple(sorted(warmth.env.items())), warmth.steps), warmth) for warmth in wishes if warmth is not None]
    counts, kinds = Counter(key for key, _ in wanted), dict(wanted)
    return tuple(kinds[key] for key, _ in counts.most_common(_MOST_SERVERS))
