"""Which earlier sweeps the author of a sweep named, for it to learn from, and what it wants to know of them. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from controllers.core import labels
from controllers.core.aims import NO_AIMS, Aims
from controllers.core.errors import SpeconError
from controllers.core.goals import GoalError, aims_in
from controllers.core.model import Direction

SAME_EXPERIMENT: Final = "same experiment"
MOST_SWEEPS: Final = 32
_BETWEEN: Final = ", "
_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
"""What names a sweep; it stands in MLflow's query language, where a quote could begin something else."""


class AfterError(SpeconError):
    """What should name earlier sweeps names none."""


@dataclass(frozen=True, slots=True)
class AfterSweeps:
    """A sweep that learns from earlier ones: their names, its objective and what it wants beside, and its search."""

    names: tuple[str, ...] = ()
    objective: str = ""
    direction: Direction = Direction.MINIMIZE
    aims: Aims = NO_AIMS
    search: str = ""

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def ids(self) -> tuple[str, ...]:
        """Those of the names that mean one sweep."""
        return tuple(name for name in self.names if name != SAME_EXPERIMENT)


NOT_AFTER: Final = AfterSweeps()


def after_names(given: object) -> tuple[str, ...]:
    """Return the earlier sweeps that are ``given``, each once.

    Args:
        given: Ids of sweeps in a list, one of them, or ``"same experiment"``; None for none.

    Raises:
        AfterError: It is something else, or they are too many.
    """
    listed = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(listed, list | tuple):
        message = f"after= lists ids of sweeps, or is {SAME_EXPERIMENT!r}, unlike {given!r:.200}"
        raise AfterError(message)
    for name in listed:
        if not isinstance(name, str) or not (name == SAME_EXPERIMENT or _SAFE.fullmatch(name)):
            message = (
                f"after= names the sweep {name!r:.200}: an id has at most 120 letters, digits, '.', '_' and '-', as "
                f"MLflow shows it in the tag specon.sweep_id; for all of its experiment write {SAME_EXPERIMENT!r}"
            )
            raise AfterError(message)
    names = tuple(dict.fromkeys(map(str, listed)))
    if len(names) > MOST_SWEEPS:
        message = f"after= names {len(names)} sweeps, and may name {MOST_SWEEPS}"
        raise AfterError(message)
    return names


def after_in(notes: Mapping[str, str]) -> AfterSweeps:
    """Return what the annotations of a trial's template say; what makes no sense counts as if it was not there."""
    written = notes.get(labels.ANNOTATION_AFTER, "")
    try:
        names = after_names(written.split(_BETWEEN)) if written else ()
        aims, direction = aims_in(notes), Direction(notes.get(labels.ANNOTATION_DIRECTION, Direction.MINIMIZE))
    except (AfterError, GoalError, ValueError):
        return NOT_AFTER
    objective, search = notes.get(labels.ANNOTATION_OBJECTIVE, ""), notes.get(labels.ANNOTATION_SEARCH, "")
    return AfterSweeps(names, objective, direction, aims, search) if names and objective else NOT_AFTER


def after_notes(names: Iterable[str]) -> dict[str, str]:
    """Return the annotations that ``after_in`` reads."""
    written = _BETWEEN.join(names)
    return {labels.ANNOTATION_AFTER: written} if written else {}
