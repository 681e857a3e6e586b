"""Noise: how far a reported value is off by chance, measured in the sweep itself. Pure.

A smooth curve bends little between two parts of a training, so what three values in a row are off a line is chance. The
median over many leaves out the first steep parts, and jumps.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controllers.core.model import TrialId

MOST_KEPT: Final = 256
"""Of a sweep, the newest."""
_NORMAL: Final = 0.6745
"""The median of the absolute value of a normal variable with deviation 1."""


@dataclass(frozen=True, slots=True)
class Noise:
    """``values`` are the last two losses of each trial that trains, ``bends`` how much three in a row were off a line.

    Both are of values that were reported in different parts of a training (see ``curves``).
    """

    values: Mapping[TrialId, tuple[float, ...]] = field(default_factory=dict)
    bends: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def seen(self, newest: Mapping[tuple[str, TrialId], float], unended: Sequence[TrialId]) -> "Noise":
        """Return what is known after trials have come to a further part with their ``newest`` losses, by sweep."""
        values = {trial: self.values[trial] for trial in unended if trial in self.values}
        bends = dict(self.bends)
        for (sweep, trial), loss in newest.items():
            before = values.get(trial, ())
            if len(before) == 2:  # noqa: PLR2004 - three in a row
                bend = abs(loss - 2 * before[1] + before[0])
                bends[sweep] = (*bends.get(sweep, ()), bend)[-MOST_KEPT:]
            values[trial] = (*before, loss)[-2:]
        return Noise(values, bends)

    def of(self, sweep: str) -> float:
        """Return the standard deviation of a value of a sweep; 0 where nothing is known."""
        return deviation(self.bends.get(sweep, ()))


def deviation(bends: Sequence[float]) -> float:
    """Return the standard deviation of single values, by how much three in a row are off a line."""
    return statistics.median(bends) / (_NORMAL * math.sqrt(6)) if bends else 0.0
