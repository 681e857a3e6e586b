"""Learning curves of parametric form, calibrated to what the thesis tells of its models (Fig. 3.1)."""

import math
from dataclasses import dataclass
from functools import cached_property
from random import Random

from controllers.worlds.simulated.workload import Report, WorkloadError


@dataclass(frozen=True)
class Curve:
    """The loss falls from ``first`` to ``last``; its reduction follows ``1 - exp(-(x / tau) ** shape)`` of Weibull.

    x is the part of a lone run's time, and the curve is scaled so that all of the reduction is there at x = 1.
    ``early`` is the part of the reduction that the first 20 % of the time bring, from which tau follows; ``shape``
    below 1 makes a long tail, above 1 a late and steep fall. ``noise`` is the standard deviation of a report, as a
    part of the whole reduction: an assumption, as the thesis shows smooth curves.
    """

    early: float
    shape: float = 1.0
    noise: float = 0.0
    first: float = 1.0
    last: float = 0.02

    def __post_init__(self) -> None:
        # Stretched without end, a curve becomes x ** shape: what the first part brings is always more than that.
        limits = {
            "shape": (0.0, math.inf),
            "early": (EARLY ** max(0.0, self.shape), 1.0),
            "noise": (-math.ulp(0.0), math.inf),
        }
        for name, (low, high) in limits.items():
            if not low < getattr(self, name) < high:
                message = f"a curve's {name} must be between {low:.4g} and {high:g}, not {getattr(self, name)}"
                raise WorkloadError(message)

    @cached_property
    def tau(self) -> float:
        """Part of the time after which a curve without end would have brought 63 % of its reduction."""
        low, high = 1e-3, 1e3
        while low > _LEAST_TAU and self._reached(EARLY, low) < self.early:
            low /= 10
        while high < 1 / _LEAST_TAU and self._reached(EARLY, high) > self.early:
            high *= 10
        while high - low > 1e-12 * high:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._reached(EARLY, middle) > self.early else (low, middle)
        return low

    def reduction(self, part: float) -> float:
        """Return the part of the whole reduction (0 to 1) that is there after ``part`` (0 to 1) of the time."""
        return self._reached(part, self.tau)

    def reports(self, work_s: float, count: int, chance: Random) -> tuple[Report, ...]:
        """Return ``count`` reports, evenly spaced over ``work_s`` lone seconds, the last at the end."""
        span = self.first - self.last
        parts = [number / count for number in range(1, count + 1)]
        errors = [chance.gauss(0.0, self.noise) if self.noise else 0.0 for _ in parts]
        return tuple(
            Report(part * work_s, self.first - span * (self.reduction(part) + error))
            for part, error in zip(parts, errors, strict=True)
        )

    def _reached(self, part: float, tau: float) -> float:
        return math.expm1(-((part / tau) ** self.shape)) / math.expm1(-((1 / tau) ** self.shape))


_LEAST_TAU = 1e-12
"""No curve that a double can tell from a step is steeper."""
EARLY = 0.2
"""Part of the time for which the thesis tells the reduction."""
GRU_LATER = (0.27, 0.99)
"""GRU alone has a second point: 99 % of the reduction at 27 % of the time (ch. 3.2)."""

VAE = Curve(early=0.65)
BI_RNN = Curve(early=0.98)
GRU = Curve(early=0.90, shape=math.log(2) / math.log(GRU_LATER[0] / EARLY))
"""The shape that leads through both points: between them, ln(1 - reduction) doubles (from 10 % left to 1 %)."""
