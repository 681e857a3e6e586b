"""How a trial trains with hyperparameters that no table holds: as the nearest configuration of the table did."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from controllers.core.model import Parameters, Point, TrialId
from controllers.core.parameters import bound_parameters
from controllers.search import Dimension, NumberRange, Options
from controllers.worlds.simulated.workload import CurvePoint, TrialSpec, following

_LOG_FROM: Final = 50.0
"""A hyperparameter whose greatest value is so many times its least is spread by its logarithm."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The curve of a configuration, and its hyperparameters as far as the table tells."""

    reports: tuple[CurvePoint, ...]
    parameters: Parameters = ()


@dataclass(frozen=True)
class NearestCurves:
    """The configurations of one task.

    Two values of a number are as far apart as their ranks among the values of the table, from 0 to 1; two texts are 1
    apart where they differ. A configuration's distance is the root of the sum of squares.
    """

    configurations: tuple[Configuration, ...]

    @classmethod
    def of(cls, curves: Mapping[TrialId, Configuration]) -> "NearestCurves":
        """Return those of a task, by name."""
        return cls(tuple(curves[name] for name in sorted(curves)))

    def trained(self, spec: TrialSpec, point: Point) -> TrialSpec:
        """Return ``spec`` as it trains with ``point``: as the nearest configuration did, the first of several."""
        given, columns = dict(bound_parameters(dict(point))), self._columns
        nearest = min(
            self.configurations, key=lambda configuration: _distance(given, dict(configuration.parameters), columns)
        )
        return replace(spec, work_s=nearest.reports[-1].work_s, reports=nearest.reports)

    def followed(self, spec: TrialSpec, parent: TrialSpec, work_s: float, point: Point) -> TrialSpec:  # noqa: ARG002 - no table has it
        """Return ``spec`` as it goes on from a checkpoint of ``parent``: as that would."""
        return following(spec, parent)

    def space(self) -> tuple[Dimension, ...]:
        """Return the space that the table was drawn from, as far as it shows."""
        return tuple(Dimension(name=name, domain=_domain(values)) for name, values in self._columns.items())

    @cached_property
    def _columns(self) -> dict[str, list[float | str]]:
        """Return the values of each hyperparameter, in order."""
        columns: dict[str, list[float | str]] = {}
        for configuration in self.configurations:
            for name, value in configuration.parameters:
                columns.setdefault(name, []).append(value)
        return {
            name: sorted(values, key=lambda value: (isinstance(value, str), value)) for name, values in columns.items()
        }


def _distance(
    given: Mapping[str, float | str], other: Mapping[str, float | str], columns: Mapping[str, Sequence[float | str]]
) -> float:
    return math.hypot(*(_apart(given.get(name), other.get(name), values) for name, values in columns.items()))


def _apart(first: float | str | None, other: float | str | None, values: Sequence[float | str]) -> float:
    numbers = [value for value in values if isinstance(value, float)]
    if isinstance(first, float) and isinstance(other, float):
        return abs(_rank(first, numbers) - _rank(other, numbers))
    return float(first != other)


def _rank(value: float, numbers: Sequence[float]) -> float:
    return (bisect_left(numbers, value) + bisect_right(numbers, value)) / (2 * len(numbers))


def _domain(values: Iterable[float | str]) -> NumberRange | Options:
    listed = list(values)
    numbers = [value for value in listed if isinstance(value, float)]
    if len(numbers) < len(listed) or len(set(numbers)) <= 5:  # noqa: PLR2004 - so few are a choice of numbers
        return Options(options=tuple(dict.fromkeys(listed)))
    low, high = min(numbers), max(numbers)
    whole = all(number.is_integer() for number in numbers)
    return NumberRange(low=low, high=high, log=0 < low * _LOG_FROM < high, whole=whole)
