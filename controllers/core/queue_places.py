"""What a sweep may say of its weight among others, and what a controller tells of its place among them, as text.

Anybody may have written what is read here, so it is bounded. Pure.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from controllers.core.labels import ANNOTATION_QUEUE
from mlflow_hooks.foreign_json import parsed

LEAST_WEIGHT: Final = 0.01
MOST_WEIGHT: Final = 100.0
MOST_PRIORITY: Final = 100
"""A sweep's priority is from minus this to this."""
MOST_REASON: Final = 200
"""Characters of a reason that are written and read."""
MOST_WRITTEN: Final = 2048
_MOST_NUMBER: Final = 1e12
_DIGITS: Final = 3


def why_no_weight(weight: object) -> str | None:
    """Return why this is no weight of a sweep, None where it is one."""
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if number and LEAST_WEIGHT <= float(str(weight)) <= MOST_WEIGHT:
        return None
    return f"weight= is a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}, not {weight!r}"


def why_no_priority(priority: object) -> str | None:
    """Return why this is no priority of a sweep, None where it is one."""
    if isinstance(priority, int) and not isinstance(priority, bool) and abs(priority) <= MOST_PRIORITY:
        return None
    return f"priority= is a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}, not {priority!r}"


def weight_in(written: str) -> float:
    """Return the weight that an annotation holds, moved into its bounds; 1 where it holds none."""
    try:
        weight = float(written)
    except ValueError:
        return 1.0
    return min(MOST_WEIGHT, max(LEAST_WEIGHT, weight)) if math.isfinite(weight) else 1.0


def priority_in(written: str) -> int:
    """Return the priority that an annotation holds, moved into its bounds; 0 where it holds none."""
    digits = written.removeprefix("-")
    if not digits.isdecimal() or len(digits) > len(str(MOST_PRIORITY)):
        return 0
    return min(MOST_PRIORITY, max(-MOST_PRIORITY, int(written)))


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """What the sweeps of a workflow under one policy have of a cluster, as their controller tells it.

    Cores are ``has_cpu`` and ``entitled_cpu``, devices in words. ``starting`` of the ``waiting`` trials may start, and
    ``gives_back`` of those that run are suspended for others. ``waits_since`` is since when they have had nothing, in
    Unix seconds, 0 where they have; ``told_at`` is when this was written.
    """

    policy: str = ""
    weight: float = 1.0
    priority: int = 0
    running: int = 0
    waiting: int = 0
    starting: int = 0
    has_cpu: float = 0.0
    entitled_cpu: float = 0.0
    has_devices: str = ""
    entitled_devices: str = ""
    gives_back: int = 0
    waits_since: float = 0.0
    told_at: float = 0.0
    reason: str = ""

    def written(self) -> str:
        """Return the text that ``place_in`` reads."""
        told = {name: round(v, _DIGITS) if isinstance(v, float) else v for name, v in asdict(self).items()}
        return json.dumps(told, separators=(",", ":"))


def annotation_of(policy: str) -> str:
    """Return what a workflow's annotation about its sweeps under ``policy`` is called."""
    return f"{ANNOTATION_QUEUE}{hashlib.sha256(policy.encode()).hexdigest()[:8]}"


def places_in(annotations: Mapping[str, str]) -> list[QueuePlace]:
    """Return what a workflow's annotations tell, for each policy; nothing of those that make no sense."""
    found = (_place_in(text) for name, text in sorted(annotations.items()) if name.startswith(ANNOTATION_QUEUE))
    return [place for place in found if place is not None]


def _place_in(written: str) -> QueuePlace | None:
    try:
        told = parsed(written) if len(written) <= MOST_WRITTEN else None
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    return QueuePlace(**{field.name: _like(field.default, told.get(field.name)) for field in fields(QueuePlace)})


def _like(usual: Any, value: object) -> Any:  # noqa: ANN401 - a field of any of three types
    """Return ``value`` if it is of the type of ``usual`` and within bounds, else ``usual``."""
    if isinstance(usual, str):
        return value[:MOST_REASON] if isinstance(value, str) else usual
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST_NUMBER:
        return usual
    return type(usual)(value)
