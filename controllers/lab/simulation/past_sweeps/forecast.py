"""What other policies would have made of a past sweep, and how well its simulation agrees with what happened."""

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from controllers.core.actions import Place
from controllers.core.model import NodeName, TrialId
from controllers.core.policy import Policy
from controllers.core.results import Comparison, RunResult, compare
from controllers.lab.simulation.best_models import best_value_regret_percent, noise_percent
from controllers.lab.simulation.measures import ComparedRun
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep
from controllers.lab.simulation.past_sweeps.recording import Recording
from controllers.lab.simulation.run import simulate
from controllers.policies.comparison.clairvoyant import inform
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import CurvePoint, TrialSpec, Workload

_TWENTIETHS: Final = 20
_MISSED: Final = 1.0
"""Percent of the gap between the best and the median trial: a model that is better by more was missed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean over seeds, and the range that nine in ten of them lie in."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Return mean, 5th and 95th percentile (interpolated between order statistics, as by Hyndman and Fan's 7)."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        cuts = statistics.quantiles(values, n=_TWENTIETHS, method="inclusive")
        return cls(statistics.fmean(values), cuts[0], cuts[-1])


@dataclass(frozen=True, slots=True)
class PolicyForecast:
    """A policy, by the line that names it, and its results under each seed.

    ``missed`` tells of each seed whether a model was missed whose best value is more than 1 % better than any that was
    reported, by the gap between the best and the median trial; empty where trials do not differ.
    ``missed_beyond_noise`` tells the same of a model that is also better by more than the noise of one value.
    """

    policy: str
    results: tuple[RunResult, ...]
    missed: tuple[bool, ...] = ()
    missed_beyond_noise: tuple[bool, ...] = ()

    def over_seeds(self, figure: Callable[[RunResult], float]) -> Interval:
        """Return a figure of the results."""
        return Interval.of([figure(result) for result in self.results])

    def against(self, baseline: "PolicyForecast") -> list[Comparison]:
        """Set each result beside that of ``baseline`` under the same seed."""
        return [compare(before, after) for before, after in zip(baseline.results, self.results, strict=True)]


@dataclass(frozen=True, slots=True)
class Validation:
    """A run beside its own simulation: errors are relative to the run, overestimates positive.

    ``completion_errors`` are those of each trial's mean completion time over the seeds, ``completions`` the range
    of it, ``missed`` the trials that really completed outside.
    """

    policy: str
    makespan_s: float
    simulated_makespan_s: Interval
    completions: Mapping[TrialId, Interval]
    completion_errors: Mapping[TrialId, float]
    missed: tuple[TrialId, ...]

    @property
    def makespan_error(self) -> float:
        """Error of the mean makespan."""
        return self.simulated_makespan_s.mean / self.makespan_s - 1

    @property
    def worst_completion_error(self) -> float:
        """Greatest error of a trial's completion time."""
        return max(self.completion_errors.values(), key=abs)

    @property
    def mean_completion_error(self) -> float:
        """Mean size of the trials' errors."""
        return statistics.fmean(map(abs, self.completion_errors.values()))


def forecast(
    recording: Recording,
    policies: Mapping[str, Policy[Any]],
    seeds: int,
    advanced: Callable[[], None] = lambda: None,
) -> list[PolicyForecast]:
    """Simulate every policy with ``seeds`` seeds, from the same placement unless a policy chooses that itself.

    Args:
        recording: What is simulated.
        policies: By the lines that name them; the first one's placement is everyone's, where none was recorded.
        seeds: How many, from 0 on.
        advanced: Called after each simulated run.
    """
    results: dict[str, list[RunResult]] = {name: [] for name in policies}
    regrets: dict[str, list[tuple[float, float]]] = {name: [] for name in policies}
    for seed in range(seeds):
        first_nodes: Mapping[TrialId, NodeName] = recording.first_nodes
        for name, policy in policies.items():
            scenario = variant(recording, seed, {} if Place in policy.needs else first_nodes)
            work = {trial.id: trial.work_s for trial in scenario.workload.trials}
            run = simulate(scenario, inform(policy, work), keep_times=True)
            results[name].append(run.result)
            if (regret := best_value_regret_percent(ComparedRun(scenario.workload, run, run))) is not None:
                regrets[name].append((regret, noise_percent(scenario.workload) or 0.0))
            first_nodes = first_nodes or {TrialId(of.id): NodeName(of.first_node) for of in run.result.trials}
            advanced()
    return [
        PolicyForecast(
            name,
            tuple(of_policy),
            tuple(regret > _MISSED for regret, _ in regrets[name]),
            tuple(regret > max(_MISSED, noise) for regret, noise in regrets[name]),
        )
        for name, of_policy in results.items()
    ]


def validate(was: PastSweep, simulated: PolicyForecast) -> Validation:
    """Set a past sweep beside its simulation; trials that only one of them has are left out."""
    by_trial: dict[TrialId, list[float]] = {}
    for result in simulated.results:
        for trial in result.trials:
            by_trial.setdefault(TrialId(trial.id), []).append(trial.completion_s)
    really = {trial.id: trial.completion_s for trial in was.trials if trial.id in by_trial and trial.completion_s > 0}
    completions = {name: Interval.of(by_trial[name]) for name in really}
    return Validation(
        policy=simulated.policy,
        makespan_s=was.makespan_s,
        simulated_makespan_s=simulated.over_seeds(lambda run: run.makespan_s),
        completions=completions,
        completion_errors={name: completions[name].mean / seconds - 1 for name, seconds in really.items()},
        missed=tuple(n for n, seconds in really.items() if not completions[n].low <= seconds <= completions[n].high),
    )


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
    reports = tuple(CurvePoint(r.work_s * factor, value) for r, value in zip(trial.reports, values, strict=True))
    return replace(trial, work_s=trial.work_s * factor, reports=reports)


def with_other_noise(values: Sequence[float], rng: random.Random) -> list[float]:
    """Return the running median of ``values`` with the residuals' signs drawn again; the first value stays as it is.

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
