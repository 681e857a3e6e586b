"""The steps of metrics that are read by their names: as the lines tell them, else counted. Pure."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Final

from mlflow_hooks.points import MOST_STEP

_FIRST: Final = 1
"""A count that is back here or below it has begun again."""


@dataclass(slots=True)
class MetricSteps:
    """Gives each value of a metric its step; those of one metric never go back.

    Args:
        counts: how many values have come of each metric whose first value told no step.
    """

    counts: MutableMapping[str, int]
    _told: dict[str, int] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _passed: dict[str, int] = field(default_factory=dict)

    def step_of(self, name: str, told: int | None) -> int:
        """Return the step of the next value of ``name``, on a line that told the step ``told``.

        A value that tells none, or an earlier one, belongs to the newest step. A program that counts from its beginning
        once more, as batches do in each epoch, goes on after it.
        """
        if name in self.counts or (told is None and name not in self._newest):
            step = self.counts.get(name, 0)
            self.counts[name] = step + 1
            return step
        newest = self._newest.get(name, -1)
        if told is not None:
            if told <= _FIRST and told < self._told.get(name, told):
                self._passed[name] = newest + 1 - told
            self._told[name] = told
            newest = min(max(newest, told + self._passed.get(name, 0)), MOST_STEP - 1)
        self._newest[name] = newest
        return newest
