"""From whose checkpoints a trial went on: as trials, and as an annotation of its pod. Pure.

What is read was written by others, so it is bounded.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

from controllers.core import labels
from controllers.core.model import Point, TrialId
from controllers.core.parameters import point_annotations
from mlflow_hooks.foreign_json import parsed

MOST_CLONES: Final = 64
"""How often a trial goes on from another's checkpoint at most."""
_MOST_WRITTEN: Final = 4096
_NUMBER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def trial_number(name: str) -> str:
    """Return the part of a trial's id that is the same in every run of its sweep."""
    return name.rpartition(".")[2]


def lineage_in(written: str, trial: TrialId) -> tuple[TrialId, ...]:
    """Return the trials in the text of an annotation of ``trial``, of the same sweep; none in any other text."""
    try:
        given = parsed(written) if 0 < len(written) <= _MOST_WRITTEN else []
    except ValueError:
        return ()
    if not isinstance(given, list) or len(given) > MOST_CLONES:
        return ()
    if not all(isinstance(number, str) and _NUMBER.fullmatch(number) for number in given):
        return ()
    before, dot, _ = trial.rpartition(".")
    return tuple(TrialId(f"{before}{dot}{number}") for number in given)


def clone_annotations(lineage: Sequence[TrialId], point: Point) -> dict[str, str]:
    """Return the annotations by which a pod's environment gets the ``lineage`` of its trial, and what it trains with.

    Without a ``point``, it trains with what it had.
    """
    numbers = json.dumps([trial_number(name) for name in lineage])
    return {labels.ANNOTATION_LINEAGE: numbers, **(point_annotations(point) if point else {})}
