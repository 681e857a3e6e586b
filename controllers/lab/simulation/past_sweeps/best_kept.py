"""Whether a policy that ends trials early would have kept the best model of a past sweep, and what it would have lost.

Judged by what the trials really came to, so trials that were ended early then count by how far they came.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from controllers.core.model import Direction
from controllers.core.results import RunResult
from controllers.lab.simulation.past_sweeps.forecast import Interval, PolicyForecast
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep


@dataclass(frozen=True, slots=True)
class BestKept:
    """``kept_share`` is the part of the seeds in which the best trial ran to its end.

    ``regret_percent`` is how much worse the best of those that did was, in percent of the gap between the best trial
    and the median one. ``stopped`` counts the trials that were ended early. ``missed_share`` is the part of the seeds
    in which a model was missed whose best value is more than 1 % better than any that was reported, and
    ``missed_beyond_noise_share`` that in which it was also better by more than the noise of one value, as a risk is
    promised; None where that cannot be told.
    """

    kept_share: float
    regret_percent: Interval
    stopped: Interval
    missed_share: float | None = None
    missed_beyond_noise_share: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for scripts."""
        return asdict(self)


def best_kept(sweep: PastSweep, forecast: PolicyForecast) -> BestKept | None:
    """Return what a policy would have kept; None where it stops no trial, or where trials do not differ."""
    losses = _losses(sweep)
    stopped = [float(sum(bool(trial.stopped) for trial in run.trials)) for run in forecast.results]
    if not any(stopped) or not losses or statistics.median(losses.values()) == min(losses.values()):
        return None
    regrets = [_regret_percent(losses, run) for run in forecast.results]
    kept = statistics.fmean(regret == 0 for regret in regrets)
    missed = statistics.fmean(forecast.missed) if forecast.missed else None
    beyond = statistics.fmean(forecast.missed_beyond_noise) if forecast.missed_beyond_noise else None
    return BestKept(kept, Interval.of(regrets), Interval.of(stopped), missed, beyond)


def _losses(sweep: PastSweep) -> dict[str, float]:
    """Return the last value of each trial, so that smaller is better; those that diverged are left out."""
    last = {str(trial.id): trial.objective[-1].value for trial in sweep.trials if trial.objective}
    sign = 1 if sweep.direction is Direction.MINIMIZE else -1
    return {name: sign * value for name, value in last.items() if math.isfinite(value)}


def _regret_percent(losses: Mapping[str, float], run: RunResult) -> float:
    ended = [losses[trial.id] for trial in run.trials if trial.succeeded and not trial.stopped and trial.id in losses]
    best = min(losses.values())
    reached = min(ended, default=max(losses.values()))
    return 100 * (reached - best) / (statistics.median(losses.values()) - best)
