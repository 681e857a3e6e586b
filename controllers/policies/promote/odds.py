"""Odds: how likely each trial is to end as the best of its sweep, by a model that was learnt from other sweeps. Pure.

The model is a logistic regression over ten features, each taken as it is and once more compressed. It says how likely a
trial that has not ended is to end more than 1 % above the best one that has, in units of what separates that from the
middle of the sweep. It was trained on sweeps of five kinds of training and on made-up curves. Features and weights are
the project's own, and no command here makes them again yet.
"""

import math
import statistics
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from controllers.core.model import TrialId
from controllers.policies.promote.curves import PARTS, Curve

_BIAS: Final = 4.408
_WEIGHTS: Final = {
    "completed": (0.010786, -1.1124),
    "empirical": (2.2135, 0.034751),
    "octaves_short": (0.075109, -0.31297),
    "gap": (-0.037359, -0.046541),
    "need": (0.15001, -0.11853),
    "need_by_most_gain": (0.023072, -0.22326),
    "spread": (-0.023624, 0.27367),
    "most_gain": (-0.045026, -0.17624),
    "rank": (-0.15688, -0.45821),
    "part": (-0.4206, -0.2126),
}
"""Of each feature, and of its compressed form ``arcsinh(10 x)``."""
_COMPRESSION: Final = 10.0
_LEAST: Final = 1e-12
"""Below this, values of a sweep do not differ."""


@dataclass(frozen=True)
class Odds:
    """What is known of one sweep.

    ``curves`` are those of trials that have not ended and have come to a first part, ``completed`` those of trials that
    have trained to their end, one at least. ``least`` is the least loss of a trial that has, where that may be of one
    whose curve nobody knows: it raises the level to beat, and says nothing of gains.
    """

    curves: Mapping[TrialId, Curve]
    completed: Sequence[Curve]
    least: float = math.inf

    @cached_property
    def _best(self) -> Curve:
        return min(self.completed, key=lambda curve: curve[-1])

    @cached_property
    def _level(self) -> float:
        """The loss to beat."""
        return min(self.least, self._best[-1])

    @cached_property
    def _values(self) -> list[float]:
        """What each trial has come to, higher is better, in rising order."""
        return sorted(-curve[-1] for curve in (*self.curves.values(), *self.completed))

    @cached_property
    def _scale(self) -> float:
        """How far the best completed trial is above the middle of the sweep."""
        return max(_LEAST, -self._level - statistics.median(self._values))

    @cached_property
    def _spread(self) -> float:
        """How far the best tenth is above the middle, by the scale, as a logarithm."""
        high = self._values[min(len(self._values) - 1, math.floor(0.9 * len(self._values)))]
        return math.log(max(0.0, high - statistics.median(self._values)) / self._scale + 0.001)

    @cached_property
    def _gains(self) -> dict[int, list[float]]:
        """By parts made: what completed trials gained from there to their end, by the scale, in rising order."""
        return {
            parts: sorted((curve[parts - 1] - curve[-1]) / self._scale for curve in self.completed)
            for parts in {len(curve) for curve in self.curves.values()}
        }

    @cached_property
    def _losses_at(self) -> dict[int, list[float]]:
        """By parts made: the losses of all trials that have come so far, in rising order."""
        every = (*self.curves.values(), *self.completed)
        return {
            parts: sorted(curve[parts - 1] for curve in every if len(curve) >= parts)
            for parts in {len(curve) for curve in self.curves.values()}
        }

    def of(self, trial: TrialId) -> float:
        """Return the probability that ``trial`` ends more than 1 % above the best completed one."""
        score = _BIAS
        for name, value in self._features(self.curves[trial]).items():
            plain, compressed = _WEIGHTS[name]
            score += plain * value + compressed * math.asinh(_COMPRESSION * value)
        return 1.0 / (1.0 + math.exp(-score)) if score > -700 else 0.0  # noqa: PLR2004 - beyond which exp overflows

    def _features(self, curve: Curve) -> dict[str, float]:
        parts, scale, loss = len(curve), self._scale, curve[-1]
        gains, losses = self._gains[parts], self._losses_at[parts]
        need = _clipped((loss - self._level) / scale, -5, 10)
        most_gain = _clipped(gains[-1], -1, 10)
        return {
            "completed": float(len(self.completed)),
            "empirical": sum(gain >= need for gain in gains) / (len(gains) + 1),
            "octaves_short": _clipped(need - _expected_gain(curve) / scale, -20, 10),
            "gap": _clipped((loss - self._best[parts - 1]) / scale, -10, 10),
            "need": need,
            "need_by_most_gain": _clipped(need / max(_LEAST, most_gain + 0.02), -5, 20),
            "spread": self._spread,
            "most_gain": most_gain,
            "rank": bisect_left(losses, loss) / len(losses),
            "part": parts / PARTS,
        }


def risk_left(odds: Collection[float]) -> float:
    """Return how likely it is that any trial of these ``odds`` ends more than 1 % above the best completed one."""
    return 1.0 - math.prod(1.0 - one for one in odds)


def _expected_gain(curve: Curve) -> float:
    """Return how much a trial gains to its end if each doubling of its training brings as much less as the last two."""
    parts = len(curve)
    half, quarter = max(1, parts // 2), max(1, parts // 4)
    newer, older = curve[half - 1] - curve[-1], curve[quarter - 1] - curve[half - 1]
    ratio = 1.0 if older <= 0 else _clipped(newer / older, 0.0, 1.2)
    doublings = math.log2(PARTS / parts)
    if ratio == 1.0:
        return newer * doublings
    return newer * ratio * (1 - math.pow(ratio, doublings)) / (1 - ratio)


def _clipped(value: float, low: float, high: float) -> float:
    return max(low, min(value, high))
