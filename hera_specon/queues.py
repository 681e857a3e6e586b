"""Sweeps whose trials wait in a queue of Kueue's: each trial's pod is a group of one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controllers.core import kueue
from hera_specon.errors import SweepError
from hera_specon.settings import Workers

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST: Final = 63
"""Characters of a label's value."""
_CHANCE: Final = 5
"""Characters that Kubernetes adds to a ``generate_name``."""
_HASH: Final = 10
"""Digits that Argo ends the name of a pod with, at most."""


@dataclass(frozen=True, slots=True)
class GroupMarks:
    """Labels and annotations that make each pod of a sweep a group by itself."""

    labels: dict[str, str]
    annotations: dict[str, str]


def queue_name(given: object, labels: Mapping[str, str] | None, workers: Workers) -> str | None:
    """Return the queue whose pods a sweep writes as groups of one, None where there is none.

    Args:
        given: ``queue=``.
        labels: ``labels=``, where authors may name the queue as well. Those who name a group leave nothing to write.
        workers: How many workers a trial has.

    Raises:
        SweepError: It is no name of a queue, or is named twice, or its trials have several workers.
    """
    by_hand = (labels or {}).get(kueue.LABEL_QUEUE)
    if given is None:
        alone = by_hand is not None and kueue.LABEL_GROUP not in (labels or {}) and workers.most == 1
        return by_hand if alone else None
    if not isinstance(given, str) or len(given) > _LONGEST or not _LABEL.fullmatch(given):
        problem = f"queue= is the name of a LocalQueue, of lower case letters, digits and '-', not {given!r}"
        raise SweepError(problem)
    if by_hand is not None:
        problem = f"queue={given!r} and labels={{{kueue.LABEL_QUEUE!r}: {by_hand!r}}} both name a queue; one is enough"
        raise SweepError(problem)
    if workers.most > 1:
        # Kueue admits a group of a number that its pods know when they are made; a gang grows and shrinks.
        problem = (
            f"queue={given!r} takes no trials of several workers: Kueue would admit each worker by itself, and a trial "
            "that is admitted in part holds its quota for nothing; use workers=1"
        )
        raise SweepError(problem)
    return given


def as_groups_of_one(queue: str, written: Mapping[str, str]) -> GroupMarks:
    """Return what makes each pod a group by itself in ``queue``, beside the labels that its author has ``written``.

    A pod that has failed is followed by one of another name, and so of another group.
    """
    named = {} if kueue.LABEL_QUEUE in written else {kueue.LABEL_QUEUE: queue}
    notes = {kueue.ANNOTATION_GROUP_SIZE: kueue.ALONE, kueue.ANNOTATION_RETRIABLE: "false"}
    return GroupMarks({**named, kueue.LABEL_GROUP: kueue.POD_NAME}, notes)


def check_pod_names(name: str | None, generate_name: str | None, template: str) -> None:
    """Check that the names of a sweep's pods can be those of their groups, which are values of labels.

    Args:
        name: That of the workflow.
        generate_name: What Kubernetes makes a name of where there is none.
        template: The name of the trials' template.

    Raises:
        SweepError: They are too long.
    """
    workflow = len(name) if name else len(generate_name or "") + _CHANCE
    longest = workflow + len(f"-{template}-") + _HASH
    if longest > _LONGEST:
        problem = (
            f"queue=: the pods' names have up to {longest} characters, and as the names of their groups Kueue takes "
            f"{_LONGEST}: shorten the name of the workflow or the sweep by {longest - _LONGEST}"
        )
        raise SweepError(problem)
