"""One past sweep, many seeds: what is uncertain about it is drawn anew for each."""

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.recording import Recording
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import Report, TrialSpec, Workload

_SMOOTHING: Final = 5
"""Reports whose median tells the trend of a curve; what a report differs from it is noise."""


def variant(recording: Recording, seed: int, first_nodes: Mapping[TrialId, NodeName]) -> Scenario:
    """Return what might as well have happened, the same for the same seed.

    The work of each trial is drawn from a lognormal distribution around the recorded one, the noise of each report
    keeps its size and draws its sign, and ties between nodes are broken by the seed.
    """
    rng = random.Random(seed)  # noqa: S311 - a simulation
    trials = tuple(_drawn(trial, recording.spread[trial.id], rng) for trial in recording.workload.trials)
    return Scenario(Workload(trials, recording.workload.nodes), recording.costs, seed, first_nodes)


def _drawn(trial: TrialSpec, sigma: float, rng: random.Random) -> TrialSpec:
    factor = math.exp(rng.gauss(0.0, sigma) - sigma**2 / 2)
    values = with_other_noise([report.value for report in trial.reports], rng)
    reports = tuple(Report(r.work_s * factor, value) for r, value in zip(trial.reports, values, strict=True))
    return replace(trial, work_s=trial.work_s * factor, reports=reports)


def with_other_noise(values: Sequence[float], rng: random.Random) -> list[float]:
    """Return the running median of ``values`` with the residuals' signs drawn anew; the first stays as it is.

    A wild bootstrap (Wu, 1986): noise keeps its size where the curve is steep and where it is level.
    """
    last = len(values) - 1
    trend = []
    for i in range(len(values)):
        # As many on each side, so that a curve without noise is its own trend up to its ends.
        reach = min(_SMOOTHING // 2, i, last - i)
        trend.append(statistics.median(values[i - reach : i + reach + 1]))
    drawn = [level + rng.choice((-1, 1)) * (value - level) for value, level in zip(values, trend, strict=True)]
    return [*values[:1], *drawn[1:]]
