"""A value that a trial logged, as a line of its journal, and the times by which the newest of several is known."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from mlflow_hooks import contract
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.state_folder import sendable

MOST_STEP: Final = 2**63
"""MLflow keeps steps in 64 bits."""
OURS: Final = "specon."
"""Begins the names of metrics that the hooks log by themselves."""


@dataclass(frozen=True, slots=True)
class Point:
    """One logged value. ``timestamp`` is in milliseconds since 1970, as MLflow wants it."""

    key: str
    value: float
    step: int
    timestamp: int

    def encode(self) -> bytes:
        """Return the point as a line; NaN and infinities are written as Python's json does."""
        value = repr(self.value) if math.isfinite(self.value) else json.dumps(self.value)
        line = f'{{"key": {quoted(self.key)}, "value": {value}, "step": {self.step}, "timestamp": {self.timestamp}}}\n'
        return line.encode()

    @classmethod
    def decode(cls, line: bytes) -> "Point | None":
        """Read a line back; None where it holds no point."""
        try:
            fields = parsed(line)
            point = cls(sendable(fields["key"]), float(fields["value"]), int(fields["step"]), int(fields["timestamp"]))
        except (ValueError, TypeError, KeyError, OverflowError):
            return None
        # An older version journalled any step, and one that MLflow cannot keep would hold up all points after it.
        return point if point.step < MOST_STEP else None


@lru_cache(maxsize=1024)
def quoted(key: str) -> str:
    """Return the key of a point as its line has it."""
    return json.dumps(key)


@dataclass(frozen=True, slots=True)
class _Stamp:
    """The step and the time of the newest point of a key, and whether its steps ever went back."""

    step: int
    timestamp: int
    goes_back: bool


class Times:
    """Gives the points of a trial times by which the newest is known where their steps do not tell.

    MLflow takes the newest at a step, and who reads a history that goes back takes the newest of all: the clocks of two
    machines may differ by more than a step takes, and two values may come within a millisecond.
    """

    def __init__(self) -> None:
        self._newest: dict[str, _Stamp] = {}

    def note(self, point: Point) -> None:
        """Take note of a point as it was logged."""
        before = self._newest.get(point.key)
        goes_back = before is not None and (before.goes_back or point.step < before.step)
        self._newest[point.key] = _Stamp(point.step, point.timestamp, goes_back)

    def timed(self, point: Point) -> Iterator[Point]:
        """Yield a point with its time; before the first whose step goes back, yield the mark that tells so."""
        before = self._newest.get(point.key)
        if before is not None and (before.goes_back or point.step <= before.step):
            earliest = before.timestamp + (1 if point.step <= before.step else 0)
            point = replace(point, timestamp=max(point.timestamp, earliest))
            first = contract.METRIC_STEPS_BACK not in self._newest and not point.key.startswith(OURS)
            if first and point.step < before.step:
                mark = Point(contract.METRIC_STEPS_BACK, float(before.step), 0, point.timestamp)
                self.note(mark)
                yield mark
        self.note(point)
        yield point
