"""What policies would have made of several past sweeps: makespans, and in how many a better model was missed. Pure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from controllers.lab.simulation.past_sweeps.forecast import Interval, PolicyForecast

_SURE: Final = statistics.NormalDist().inv_cdf(0.975)
"""Standard deviations to each side of an interval of 95 %."""


@dataclass(frozen=True, slots=True)
class Rate:
    """In how many of ``sweeps`` sweeps something was so, and the interval of 95 % that its part of all sweeps lies in.

    A sweep counts by the part of its seeds, so ``count`` need not be whole.
    """

    sweeps: int
    count: float
    low: float
    high: float

    @property
    def share(self) -> float:
        """The part of the sweeps."""
        return self.count / self.sweeps

    @classmethod
    def of(cls, parts: Sequence[float]) -> Self | None:
        """Return the rate of what was so in these ``parts`` of the seeds of each sweep; None without a sweep.

        Wilson's score interval (Probable Inference, the Law of Succession, and Statistical Inference, JASA 22, 1927) of
        that many sweeps, not of their seeds: those tell little of another sweep. SciPy's takes whole counts alone.
        Parts vary less than what is so or not, so the interval is rather too wide.
        """
        if not parts:
            return None
        number, count = len(parts), math.fsum(parts)
        share, square = count / number, _SURE**2
        middle = (share + square / (2 * number)) / (1 + square / number)
        reach = _SURE / (1 + square / number) * math.sqrt(share * (1 - share) / number + square / (4 * number**2))
        return cls(number, count, max(0.0, middle - reach), min(1.0, middle + reach))

    def to_dict(self) -> dict[str, Any]:
        """Return it for scripts."""
        return {**asdict(self), "share": self.share}


@dataclass(frozen=True, slots=True)
class SweepMakespan:
    """The makespan of a past sweep under a policy, in seconds over the seeds, and its ratio to that of the baseline."""

    seconds: Interval
    ratio: Interval


@dataclass(frozen=True, slots=True)
class OverSweeps:
    """What a policy made of several sweeps: ``makespans`` in their order, and how often a better model was missed.

    ``promise`` is the part of sweeps in which it may miss one, None without a promise. ``missed`` counts models that
    are more than 1 % better than what was found, ``missed_beyond_noise`` those that are also better by more than the
    noise of one value, as a risk is promised. Both are None for a policy that ended no trial early.
    """

    policy: str
    promise: float | None
    makespans: tuple[SweepMakespan, ...]
    missed: Rate | None
    missed_beyond_noise: Rate | None

    @property
    def ratio(self) -> float:
        """The makespan against the baseline: the geometric mean over the sweeps."""
        return statistics.geometric_mean([makespan.ratio.mean for makespan in self.makespans])

    def to_dict(self) -> dict[str, Any]:
        """Return it for scripts."""
        rates = {"missed": self.missed, "missed_beyond_noise": self.missed_beyond_noise}
        told = {name: None if rate is None else rate.to_dict() for name, rate in rates.items()}
        return {"policy": self.policy, "promise": self.promise, "makespan_ratio": self.ratio, **told}


def over_sweeps(promise: float | None, forecasts: Sequence[tuple[PolicyForecast, PolicyForecast]]) -> OverSweeps:
    """Return what one policy made of several sweeps.

    Args:
        promise: The part of sweeps in which it may miss a better model; None without a promise.
        forecasts: The baseline and the policy in each of the sweeps, one at least.
    """
    ended_any = any(trial.stopped for _, of in forecasts for result in of.results for trial in result.trials)
    missed = Rate.of([statistics.fmean(of.missed) for _, of in forecasts if of.missed])
    beyond = Rate.of([statistics.fmean(of.missed_beyond_noise) for _, of in forecasts if of.missed_beyond_noise])
    return OverSweeps(
        forecasts[0][1].policy,
        promise,
        tuple(_makespan(baseline, of) for baseline, of in forecasts),
        missed if ended_any else None,
        beyond if ended_any else None,
    )


def _makespan(baseline: PolicyForecast, of: PolicyForecast) -> SweepMakespan:
    ratios = [comparison.makespan_ratio for comparison in of.against(baseline)]
    return SweepMakespan(of.over_seeds(lambda run: run.makespan_s), Interval.of(ratios))
