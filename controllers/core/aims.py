"""What a sweep wants of its models: which metrics are to be low or high, and which must keep a bound. Pure.

Its first objective stands alone in most sweeps, and everything goes by it. What comes beside it stands here.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import le
from typing import Final

MOST_OBJECTIVES: Final = 4
"""Of a sweep. Samplers of Optuna measure volumes, whose cost grows with each objective by an order of magnitude."""
MOST_CONSTRAINTS: Final = 8
MOST_COMPARED: Final = 2_000
"""Most trials among whom a front by more than two objectives is found: each may have to be compared with all others."""
LONGEST_METRIC: Final = 250
"""Characters of a metric's name that MLflow takes."""
AT_MOST: Final = "<="
AT_LEAST: Final = ">="
_BETWEEN: Final = ", "
"""Stands between two of them: MLflow takes no comma in the name of a metric."""


class Direction(StrEnum):
    """Which way an objective improves."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"

    def loss(self, value: float) -> float:
        """Return ``value`` so that smaller is better."""
        return value if self is Direction.MINIMIZE else -value


@dataclass(frozen=True, slots=True)
class FurtherObjective:
    """An objective beside the first."""

    metric: str
    direction: Direction

    def __str__(self) -> str:
        return f"{self.direction.value} {self.metric}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A bound that a metric must keep: ``relation`` is ``<=`` or ``>=``."""

    metric: str
    relation: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric} {self.relation} {repr(self.bound).removesuffix('.0')}"

    def violation(self, value: float) -> float:
        """Return by how much ``value`` breaks it; 0 or below where it keeps it, and finite."""
        over = value - self.bound if self.relation == AT_MOST else self.bound - value
        return max(-sys.float_info.max, min(over, sys.float_info.max))


@dataclass(frozen=True, slots=True)
class Aims:
    """What a sweep wants beside its first objective: ``further`` ones, and ``constraints``."""

    further: tuple[FurtherObjective, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.further or self.constraints)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that they are about, each once."""
        names = [objective.metric for objective in self.further]
        return tuple(dict.fromkeys([*names, *(bound.metric for bound in self.constraints)]))

    @property
    def written(self) -> tuple[str, str]:
        """The further objectives and the constraints, as ``read_aims`` reads them."""
        return _BETWEEN.join(map(str, self.further)), _BETWEEN.join(map(str, self.constraints))

    def losses(self, logged: Mapping[str, float]) -> tuple[float, ...] | None:
        """Return how bad a model is by each further objective; None where one has no finite value in ``logged``."""
        values = [logged.get(aim.metric, math.nan) for aim in self.further]
        if not all(map(math.isfinite, values)):
            return None
        return tuple(aim.direction.loss(value) for aim, value in zip(self.further, values, strict=True))

    def violations(self, logged: Mapping[str, float]) -> tuple[float, ...] | None:
        """Return by how much a model breaks each constraint; None where one has no finite value in ``logged``."""
        values = [logged.get(aim.metric, math.nan) for aim in self.constraints]
        if not all(map(math.isfinite, values)):
            return None
        return tuple(aim.violation(value) for aim, value in zip(self.constraints, values, strict=True))


NO_AIMS: Final = Aims()


@lru_cache(maxsize=256)
def read_aims(further: str, constraints: str) -> Aims:
    """Return what two texts say, such as ``minimize latency, maximize accuracy`` and ``memory_mb <= 512``.

    Raises:
        ValueError: One says nothing of the kind, or too much.
    """
    objectives = tuple(_objective(text) for text in _parts(further, MOST_OBJECTIVES - 1, "objectives beside the first"))
    metrics = [objective.metric for objective in objectives]
    if twice := next((metric for metric in metrics if metrics.count(metric) > 1), None):
        message = f"{twice!r} is an objective twice"
        raise ValueError(message)
    return Aims(objectives, tuple(map(_constraint, _parts(constraints, MOST_CONSTRAINTS, "constraints"))))


def _parts(text: str, most: int, what: str) -> list[str]:
    parts = text.split(_BETWEEN) if text else []
    if len(parts) > most:
        message = f"there are {len(parts)} {what}, and may be {most}"
        raise ValueError(message)
    return parts


def _objective(text: str) -> FurtherObjective:
    direction, _, metric = text.partition(" ")
    if direction not in set(Direction) or not 0 < len(metric) <= LONGEST_METRIC:
        message = f"an objective is written such as 'minimize latency', not {text[:80]!r}"
        raise ValueError(message)
    return FurtherObjective(metric, Direction(direction))


def _constraint(text: str) -> Constraint:
    metric, _, bound = text.rpartition(" ")
    metric, _, relation = metric.rpartition(" ")
    try:
        number = float(bound)
    except ValueError:
        number = math.nan
    if relation not in {AT_MOST, AT_LEAST} or not 0 < len(metric) <= LONGEST_METRIC or not math.isfinite(number):
        message = f"a constraint is written such as 'memory_mb <= 512', not {text[:80]!r}"
        raise ValueError(message)
    return Constraint(metric, relation, number)


def pareto_front(losses: Sequence[tuple[float, ...]]) -> list[int]:
    """Return the places of those that no other beats: none is as good in all and better in one. In their order.

    Args:
        losses: Of each, one for each objective, all finite. Of more than two objectives the first ``MOST_COMPARED``
            count: of others nobody could write a sweep.
    """
    front: list[tuple[float, ...]] = []
    places: list[int] = []
    # In this order, whatever beats one comes before it; and as to beat goes on from one to the next, only those of the
    # front need be looked at. Of two objectives the last of these is the best by the second.
    few = not losses or len(losses[0]) <= 2  # noqa: PLR2004 - objectives
    for place in sorted(range(len(losses) if few else min(len(losses), MOST_COMPARED)), key=losses.__getitem__):
        one = losses[place]
        beside = front[-1:] if few else front
        if not any(other != one and all(map(le, other, one)) for other in beside):
            front.append(one)
            places.append(place)
    return sorted(places)
