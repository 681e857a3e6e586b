"""What our annotations may hold, and what those of a trial are called: one place for who writes and for who reads them.

Kubernetes takes 63 characters after the prefix of a name, and 256 KiB for all annotations of an object together, names
included. What does not fit is an error where it is to be written. Pure.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from controllers.core.errors import SpeconError
from controllers.core.labels import ANNOTATION_ASKED, ANNOTATION_FIRST_NODES, ANNOTATION_STOP, ANNOTATION_TRIES

MOST_OF_AN_OBJECT: Final = 256 * 1024
"""Bytes of the names and values of all annotations of an object (Kubernetes' ``TotalAnnotationSizeLimitB``)."""
MOST_OF_ONE: Final = 4096
"""Characters of an annotation of ours that names no trials."""
MOST_OF_A_LIST: Final = 128 * 1024
"""Characters that are written of an annotation that names trials: any fifteen thousand of them, by number. As many are
read as Kubernetes takes, so that no command takes what another wrote for nothing and writes over it."""
MOST_REASON: Final = 64
"""Characters of the reason why a trial was stopped."""
SHORT_REASON: Final = "stopped"
"""The reason that is written where a workflow has so many trials that the reasons of all would take too much."""
_OF_LONG_REASONS: Final = MOST_OF_AN_OBJECT * 3 // 4
_LISTS: Final = frozenset({ANNOTATION_ASKED, ANNOTATION_FIRST_NODES})
_LONGEST_NAME: Final = 63
_LONGEST_SWEEP: Final = 51
"""Letters of a sweep's name that stand whole in names of annotations: with ``tries-`` before it and a number of five
letters after it, it is as long as may be."""
_HASH: Final = 8
_BEGINNING: Final = 31


class AnnotationError(SpeconError):
    """An annotation is too long, or an object has no room for it."""


def most_read_of(name: str) -> int:
    """Return how many characters the annotation ``name`` may have; its readers take a longer one for none."""
    return MOST_OF_AN_OBJECT if name in _LISTS else MOST_OF_ONE


def size_of(annotations: Mapping[str, str]) -> int:
    """Return the bytes that annotations take, as Kubernetes counts them."""
    return sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())


def check_fits(annotations: Mapping[str, str], beside: Mapping[str, str], what: str) -> None:
    """Check that ``annotations`` can be written on an object that has those ``beside`` already.

    Args:
        annotations: What is to be written.
        beside: What the object has; those of the same name are replaced.
        what: What is too long, for people: the subject of the message.

    Raises:
        AnnotationError: One is longer than it may be, or all together are more than Kubernetes takes.
    """
    for name, value in annotations.items():
        most = MOST_OF_A_LIST if name in _LISTS else MOST_OF_ONE
        if len(value) > most:
            message = f"{what} takes {len(value)} characters in the annotation {name}, which holds {most}"
            raise AnnotationError(message)
    whole = size_of({**beside, **annotations})
    if whole > MOST_OF_AN_OBJECT:
        message = f"{what} does not fit: all annotations together would take {whole} bytes of {MOST_OF_AN_OBJECT}"
        raise AnnotationError(message)


def check_room_for_stops(trials: Iterable[tuple[str, str]], beside: Mapping[str, str]) -> None:
    """Check that each of ``trials``, given as sweep and number, can be marked as stopped beside other annotations.

    Raises:
        AnnotationError: The marks would take more than Kubernetes gives an object.
    """
    names = [of_trial(ANNOTATION_STOP, sweep, number) for sweep, number in trials]
    free = MOST_OF_AN_OBJECT - size_of(beside)
    wanted = size_of(dict.fromkeys((name for name in names if name not in beside), SHORT_REASON))
    if wanted > free:
        message = (
            f"the marks of {len(names)} stopped trials take {wanted} bytes of annotations, and the workflow has "
            f"{max(0, free)} of {MOST_OF_AN_OBJECT} left: stop fewer, or end it as a whole with `argo stop`"
        )
        raise AnnotationError(message)


def reason_that_fits(why: str, mark: str, trials: int) -> str:
    """Return as much of the reason for a stop as each of so many ``trials`` may have; ``mark`` names its annotation."""
    return why[:MOST_REASON] if (len(mark) + MOST_REASON) * trials <= _OF_LONG_REASONS else SHORT_REASON


def of_sweep(name: str, sweep: str) -> str:
    """Return how a workflow's annotations about trials of ``sweep`` begin, up to the number of the trial."""
    return f"{name}{_short(sweep)}-"


def of_trial(name: str, sweep: str, number: str) -> str:
    """Return what a workflow's annotation about a trial is called; ``name`` is its beginning, as ``labels`` has it."""
    return f"{of_sweep(name, sweep)}{number}"


def why_unnameable(sweep: str, number: str) -> str | None:
    """Return why Kubernetes takes no annotations about a trial, None where it does."""
    longest = of_trial(ANNOTATION_TRIES, sweep, number).partition("/")[2]
    over = len(longest) - _LONGEST_NAME
    if over <= 0:
        return None
    return (
        f"trial {sweep}.{number} would have an annotation {longest!r} of {len(longest)} characters, and Kubernetes "
        f"takes {_LONGEST_NAME}: make the name of the sweep {over} shorter"
    )


def _short(sweep: str) -> str:
    """Return a sweep's name, or one in its place that leaves room for what stands around it and is no other's."""
    if len(sweep) <= _LONGEST_SWEEP:
        return sweep
    return f"{sweep[:_BEGINNING]}-{hashlib.sha256(sweep.encode()).hexdigest()[:_HASH]}"
