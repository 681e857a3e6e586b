"""How long trials of unknown length are: by their parameters, or like the sweep's other trials. Pure."""

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from controllers.core.model import Parameters
from controllers.policies.kit.work_by_parameters import (
    LEAST_SPREAD,
    MOST_SPREAD,
    UNKNOWN_SPREAD,
    Law,
    law_of,
    left_beyond,
    log_of,
)

DIGITS: Final = 2
"""Decimals that laws see of the logarithm of what a step costs: a per cent, finer than costs are known."""


OTHER_MACHINE: Final = 0.5
"""Spread of the logarithm of what a step costs on another machine: machines in use differ by a factor of two or so."""


class EstimateSource(StrEnum):
    """What an estimate rests on."""

    OWN = "its own reports"
    PARAMETERS = "its parameters"
    OTHERS = "the sweep's other trials"
    EARLIER = "trials of earlier sweeps"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a trial: its steps in all, and what one costs in core seconds as on a single core.

    ``spread`` is the standard deviation of the logarithm of that cost, as it will be over the steps to come.
    """

    parameters: Parameters = ()
    steps: float | None = None
    cost: float | None = None
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Guess:
    """Something that is left to do, the standard deviation of its logarithm, and what it rests on."""

    left: float
    spread: float
    source: EstimateSource


class Lengths:
    """What the trials of a sweep tell of one another.

    Steps and what a step costs each follow a law of their own, so where one is known of a trial, only the other is
    guessed. Where the parameters explain nothing, a trial is taken for as long as the others that are longer than it
    has run so far, on average (mean residual life).

    Args:
        trials: What is known of each, in any order.
        earlier: What trials of earlier sweeps tell beside them (``earlier_lengths``).
    """

    def __init__(self, trials: Sequence[Known], earlier: Sequence[Known] = ()) -> None:
        self._trials = [*earlier, *trials]
        self._told_steps = any(trial.steps is not None for trial in trials)
        self._told_costs = any(trial.cost is not None for trial in trials)

    def left(self, trial: Known, done: float) -> Guess:
        """Return the work that is left of ``trial``, in seconds on a single core, after ``done`` steps."""
        if trial.steps is not None and trial.cost is not None:
            return Guess(max(0.0, trial.steps - done) * trial.cost, trial.spread, EstimateSource.OWN)
        steps = self._steps_left(trial, done)
        cost = self._cost(trial)
        sources = {part.source for part in (steps, cost) if part is not None}
        explained = not sources.isdisjoint({EstimateSource.PARAMETERS, EstimateSource.EARLIER})
        if steps is None or cost is None or not (explained or trial.cost or trial.steps):
            worked = done * (trial.cost or 0.0)
            return _residual(self._all_work, worked) if worked else self._unreported
        source = EstimateSource.PARAMETERS if explained else EstimateSource.OTHERS
        if EstimateSource.EARLIER in sources:
            source = EstimateSource.EARLIER
        return Guess(steps.left * cost.left, math.hypot(steps.spread, cost.spread), source)

    def _steps_left(self, trial: Known, done: float) -> Guess | None:
        if trial.steps is not None:
            return Guess(max(0.0, trial.steps - done), 0.0, EstimateSource.OWN)
        if self._steps is None:
            return None
        if self._steps.terms or not done:
            source = _source(self._steps, told=self._told_steps)
            return Guess(*left_beyond(*self._steps.of(trial.parameters), done), source)
        return _residual(self._all_steps, done)

    def _cost(self, trial: Known) -> Guess | None:
        if trial.cost is not None:
            return Guess(trial.cost, trial.spread, EstimateSource.OWN)
        if self._costs is None:
            return None
        source = _source(self._costs, told=self._told_costs)
        cost, spread = left_beyond(*self._costs.of(trial.parameters), 0.0)
        # Another machine may be faster or slower, as long as none of the sweep's own trials has told of this one.
        unlike = OTHER_MACHINE if source is EstimateSource.EARLIER else 0.0
        return Guess(cost, math.hypot(spread, unlike), source)

    # Found only when a trial needs them: late in a sweep every trial has told its length.
    @cached_property
    def _steps(self) -> Law | None:
        return law_of([(trial.parameters, log_of(trial.steps)) for trial in self._trials if trial.steps is not None])

    @cached_property
    def _costs(self) -> Law | None:
        known = [(trial.parameters, trial.cost) for trial in self._trials if trial.cost is not None]
        return law_of([(parameters, round(log_of(cost), DIGITS)) for parameters, cost in known])

    @cached_property
    def _all_steps(self) -> list[float]:
        return sorted(trial.steps for trial in self._trials if trial.steps is not None)

    @cached_property
    def _all_work(self) -> list[float]:
        known = ((trial.steps, trial.cost) for trial in self._trials)
        return sorted(steps * cost for steps, cost in known if steps is not None and cost is not None)

    @cached_property
    def _unreported(self) -> Guess:
        return _residual(self._all_work, 0.0)


def _source(law: Law, *, told: bool) -> EstimateSource:
    """Return what a law rests on; ``told`` says whether any trial of the sweep itself is behind it."""
    if not told:
        return EstimateSource.EARLIER
    return EstimateSource.PARAMETERS if law.terms else EstimateSource.OTHERS


def _residual(totals: Sequence[float], done: float) -> Guess:
    """Return what those of ``totals`` (rising) that are greater than ``done`` have left beyond it, on average."""
    longer = totals[bisect_right(totals, done) :]
    if not longer:
        return Guess(done / 2 if done else 1.0, MOST_SPREAD, EstimateSource.OTHERS)
    logs = [math.log(total - done) for total in longer]
    spread = statistics.stdev(logs) if len(logs) > 1 else UNKNOWN_SPREAD
    return Guess(statistics.fmean(longer) - done, max(spread, LEAST_SPREAD), EstimateSource.OTHERS)
