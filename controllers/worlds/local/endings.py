"""What the end of an attempt means: its program may stand behind a launcher, and may have come no further."""

from pathlib import Path
from typing import Final

from controllers.core.after_attempt import EXIT_TERMINATED
from controllers.worlds.local.processes import Exit
from mlflow_hooks.contract import EXIT_MIGRATE
from mlflow_hooks.interruption import OWNER
from mlflow_hooks.journal import POINTS
from mlflow_hooks.no_links import reading
from mlflow_hooks.points import Point
from mlflow_hooks.presence import Presence

_HIDDEN: Final = 1
"""Exit code of a program that did not come to its end, where nothing more is known."""
_TAIL: Final = 65_536


def true_code(end: Exit, said: Presence | None, *, hooked: bool) -> int:
    """Return the exit code of the program that trained, from that of the first process of its attempt.

    A pipe, a shell or ``torchrun`` may end with 0 or 1 although the program left with 75, or with 0 although it failed.

    Args:
        end: how the attempt ended.
        said: what the program's hooks have said of it and not taken back, as they do at the end of the training.
        hooked: whether hooks have taken the trial over in this attempt at all.
    """
    if said is not None and said.left:
        return EXIT_MIGRATE
    if said is not None:
        hides = end.code == 0 and said.pid != end.pid
        return end.code if not hides else EXIT_TERMINATED if end.asked else _HIDDEN
    # Without hooks nobody tells whether the program has left or come to its end: its next attempt will see.
    unknown = end.behind and not hooked and end.code != EXIT_MIGRATE
    return EXIT_TERMINATED if unknown else end.code


def owned_by(folder: Path, token: str) -> bool:
    """Return whether hooks have taken the trial's folder over for the attempt ``token``."""
    try:
        with reading(folder / OWNER) as file:
            return file.read(len(token) + 1) == token.encode()
    except OSError:
        return False


def is_hooked(folder: Path) -> bool:
    """Return whether hooks have taken the trial's folder over in any attempt."""
    return (folder / OWNER).exists()


def steps_gained(folder: Path) -> int:
    """Return how many steps a trial has come to, by the last points of its journal and by its checkpoints."""
    try:
        with reading(folder / POINTS) as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        lines = []
    logged = [point.step + 1 for line in lines if (point := Point.decode(line)) is not None]
    return max([0, *logged, *saved_steps(folder)])


def saved_steps(folder: Path) -> list[int]:
    """Return the steps that the checkpoints of a trial go on with, whole or not."""
    names = [path.name.removeprefix("step-") for path in (folder / "checkpoints").glob("step-*")]
    return [int(name) for name in names if name.isdecimal() and len(name) <= len(str(2**63))]
