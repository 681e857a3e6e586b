"""What many seeds say together."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit

_BOTH_TAILS = 0.975


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds with its 95 % confidence interval, None where there is one seed only."""

    mean: float
    ci95: tuple[float, float] | None

    @property
    def half_width(self) -> float | None:
        """How far the interval reaches to either side."""
        return None if self.ci95 is None else (self.ci95[1] - self.ci95[0]) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return it for scripts."""
        return {"mean": self.mean, "ci95": None if self.ci95 is None else list(self.ci95)}


def estimate(values: Sequence[float]) -> Estimate:
    """Return mean and Student's t interval of ``values``, each of an independent seed.

    Raises:
        ValueError: There is none, or one is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        message = f"no mean of {list(values)}"
        raise ValueError(message)
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Estimate(mean, None)
    error = statistics.stdev(values) / math.sqrt(len(values))
    reach = float(stdtrit(len(values) - 1, _BOTH_TAILS)) * error
    return Estimate(mean, (mean - reach, mean + reach))
