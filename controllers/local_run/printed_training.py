"""What the log of one trial tells of its training: its values, and whether an attempt went on or began again. Pure."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from mlflow_hooks.bounds import MOST_POINTS
from mlflow_hooks.going_on import beginning_of, goes_on
from mlflow_hooks.points import Point
from mlflow_hooks.printed.metric_steps import MetricSteps
from mlflow_hooks.printed.named import NamedLine, NamedReader

_MOST_HEAD: Final = 1000
"""So many lines of an attempt are all looked at for their step; later ones only where they name the objective."""


@dataclass(slots=True)
class PrintedTraining:
    """Takes in the lines of a trial's log, one after the other.

    Args:
        objective: the metric that counts.
        better: returns the better one of two values.

    Attributes:
        points: the values of the training that counts, at the steps that it told or numbered from 0.
        first: the first finite one.
        best: the best one.
        began: how many bytes the log had when that training began.
        begun_again: how many trainings there were before it.
    """

    objective: str
    better: Callable[[float, float], float]
    points: list[Point] = field(default_factory=list)
    first: float | None = None
    best: float | None = None
    began: int = 0
    begun_again: int = 0
    _reader: NamedReader = field(init=False)
    _head: NamedReader = field(init=False)
    _steps: MetricSteps = field(init=False)
    _lines: int = 0
    _around: int | None = None
    # The steps that tell of each of the points: that of its line, and the one above.
    _told: list[tuple[int | None, int | None]] = field(default_factory=list)
    _undecided: int | None = None

    def __post_init__(self) -> None:
        self._steps = MetricSteps({})
        self._begin()

    def attempt(self, offset: int) -> None:
        """Note that what follows is of another attempt, which began when the log had ``offset`` bytes.

        The next value tells whether it goes on.
        """
        self._undecided = offset
        self._begin()

    def take(self, line: str, at_ms: Callable[[], int]) -> NamedLine:
        """Take in a line, and return what it tells; ``at_ms`` gives the time in milliseconds since 1970."""
        self._lines += 1
        read = self._reader.read(line)
        if not read.values and self._lines <= _MOST_HEAD:
            # As in ``Epoch 3/10`` above the lines with values.
            step = self._head.read(line).step
            self._around = self._around if step is None else step
        for _, value in read.values:
            told = read.step, self._around
            self._decide(told)
            if len(self.points) >= MOST_POINTS:
                # The curve is thinned; its first two points stay, as their steps tell of what goes on.
                del self.points[2:-1:2], self._told[2:-1:2]
            self._told.append(told)
            self.points.append(self._next(value, read.step, at_ms()))
            if math.isfinite(value):
                self.first = value if self.first is None else self.first
                self.best = value if self.best is None else self.better(self.best, value)
        return read

    def _begin(self) -> None:
        # The reader of an attempt: a table's rows follow its head.
        self._reader, self._head = NamedReader(self.objective, alone=True), NamedReader(self.objective)
        self._lines, self._around = 0, None

    def _decide(self, told: tuple[int | None, int | None]) -> None:
        """Take the next value, with the step of its line and that above, as one that goes on or that begins again."""
        offset, self._undecided = self._undecided, None
        if offset is None or not self.points:
            return
        for which, step in enumerate(told):
            before = [both[which] for both in self._told]
            if step is not None and goes_on(beginning_of(one for one in before if one is not None), step):
                self._go_on_at(which, step)
                return
        self.points, self._told, self._steps, self.first, self.best = [], [], MetricSteps({}), None, None
        self.began, self.begun_again = offset, self.begun_again + 1

    def _go_on_at(self, which: int, step: int) -> None:
        """Drop what an attempt repeats that goes on at an earlier step than the one before had come to."""
        kept = len(self._told)
        while kept and (last := self._told[kept - 1][which]) is not None and last >= step:
            kept -= 1
        if kept < len(self._told):
            del self.points[kept:], self._told[kept:]
            self._steps = MetricSteps({})
            for told, _ in self._told:
                self._steps.step_of(self.objective, told)

    def _next(self, value: float, told: int | None, at_ms: int) -> Point:
        """Return the point of the next value. Of a step MLflow takes the value that has the latest time."""
        step = self._steps.step_of(self.objective, told)
        last = self.points[-1] if self.points else None
        later = last.timestamp + 1 if last is not None and last.step == step else at_ms
        return Point(self.objective, value, step, max(at_ms, later))
