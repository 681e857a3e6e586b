"""Policies evaluated on experiments: every policy on every seed, over all cores, and what the seeds say together."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any

from scipy.special import stdtrit

from controllers.core.actions import Place
from controllers.core.errors import SpeconError
from controllers.core.model import NodeName, TrialId
from controllers.core.policy import Policy
from controllers.core.results import compare
from controllers.core.stop_rules import NO_RULES, StopRules
from controllers.lab.simulation.best_models import BEST_MODELS
from controllers.lab.simulation.bounds import makespan_bound, mean_completion_bound
from controllers.lab.simulation.experiments.experiment import Setup
from controllers.lab.simulation.measures import ComparedRun, RunMeasure
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.lab.worker_pool import worker_pool
from controllers.policies.comparison.clairvoyant import inform
from controllers.policies.registry import parse_policy, policy_spec
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import Workload
from mlflow_hooks.system import cores_here

_BOTH_TAILS = 0.975


class EstimateError(SpeconError):
    """There is nothing to estimate from."""


@dataclass(frozen=True, slots=True)
class MeanOverSeeds:
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


def estimate(values: Sequence[float]) -> MeanOverSeeds:
    """Return mean and Student's t interval of ``values``, each of an independent seed.

    Raises:
        EstimateError: There is none, or one is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        message = f"an estimate needs one finite value or more, not {list(values)}"
        raise EstimateError(message)
    mean = statistics.fmean(values)
    if len(values) == 1:
        return MeanOverSeeds(mean, None)
    error = statistics.stdev(values) / math.sqrt(len(values))
    reach = float(stdtrit(len(values) - 1, _BOTH_TAILS)) * error
    return MeanOverSeeds(mean, (mean - reach, mean + reach))


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures of one run: seconds, and ratios to the same seed's run under the first policy.

    ``bound_ratio`` is the makespan, ``mean_bound_ratio`` the mean completion time, as a multiple of its lower bound.
    ``measures`` are the experiment's own, by name: None where there is nothing to measure or to compare with.
    ``cut_short`` is the part of the trials that were ended early or never began.
    """

    makespan_s: float
    mean_completion_s: float
    median_completion_s: float
    makespan_change: float
    mean_change: float
    faster_share: float
    worst_loser: float
    bound_ratio: float
    mean_bound_ratio: float
    moves: int
    resizes: int
    measures: Mapping[str, float | None]
    cut_short: float = 0.0


@dataclass(frozen=True, slots=True)
class PolicySummary:
    """One policy in one experiment, over ``seeds`` seeds; the first policy of each experiment is the baseline.

    ``policy`` is as it was asked for, ``effective`` with the parameters that it had.
    """

    experiment: str
    policy: str
    effective: str
    baseline: bool
    runs: tuple[RunFigures, ...]

    @property
    def seeds(self) -> int:
        """How many seeds."""
        return len(self.runs)

    def over_seeds(self, figure: Callable[[RunFigures], float | None]) -> MeanOverSeeds | None:
        """Return mean and interval of a figure, None where there is none."""
        values = [value for run in self.runs if (value := figure(run)) is not None]
        return estimate(values) if values else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for scripts."""
        return {
            "experiment": self.experiment,
            "policy": self.policy,
            "seeds": self.seeds,
            "effective": self.effective,
            "makespan_s": self._told(lambda run: run.makespan_s),
            "makespan_change": None if self.baseline else self._told(lambda run: run.makespan_change),
            "mean_completion_s": self._told(lambda run: run.mean_completion_s),
            "mean_change": None if self.baseline else self._told(lambda run: run.mean_change),
            "median_completion_s": self._told(lambda run: run.median_completion_s),
            "faster_share": None if self.baseline else self._told(lambda run: run.faster_share),
            "worst_loser": self._told(lambda run: run.worst_loser),
            "bound_ratio": self._told(lambda run: run.bound_ratio),
            "mean_bound_ratio": self._told(lambda run: run.mean_bound_ratio),
            "moves": self._told(lambda run: run.moves),
            "resizes": self._told(lambda run: run.resizes),
            "cut_short": self._told(lambda run: run.cut_short),
            "measures": {name: self._told(partial(_own_measure, name)) for name in self.runs[0].measures},
            **self._best_models(),
        }

    def _best_models(self) -> dict[str, Any]:
        """Return what became of the best models: parts of the sweeps as plain numbers."""
        told = {name: self._told(partial(_own_measure, name)) for name in BEST_MODELS if name in self.runs[0].measures}
        parts = {name for name, measure in BEST_MODELS.items() if measure.unit == "share"}
        return {name: figure["mean"] if figure and name in parts else figure for name, figure in told.items()}

    def _told(self, figure: Callable[[RunFigures], float | None]) -> dict[str, Any] | None:
        interval = self.over_seeds(figure)
        return None if interval is None else interval.to_dict()


@dataclass(frozen=True, slots=True)
class ExperimentPlan:
    """An experiment and the policies to run it under, as they were asked for; the first is the baseline.

    ``measures`` are taken beside those of the experiment. ``stops`` are the rules that end its sweeps early.
    """

    experiment: Setup
    policies: tuple[str, ...]
    measures: tuple[RunMeasure, ...] = ()
    stops: StopRules = NO_RULES

    def effective(self) -> tuple[Policy[Any], ...]:
        """Return the policies with the experiment's parameters wherever they were named without their own.

        Raises:
            UnknownPolicyError: One is not known.
            PolicyParameterError: A parameter of one is unknown or out of bounds.
        """
        return tuple(self.experiment.parameterised(parse_policy(spec)) for spec in self.policies)


def run_seed(plan: ExperimentPlan, seed: int) -> tuple[RunFigures, ...]:
    """Return the figures of each policy of ``plan`` for one seed."""
    runs = simulate_seed(plan, seed)
    workload = plan.experiment.workload(seed)
    bounds = (makespan_bound(workload), mean_completion_bound(workload))
    measures = (*plan.experiment.measures, *plan.measures)
    return tuple(_figures(ComparedRun(workload, run, runs[0]), bounds, measures) for run in runs)


def simulate_seed(plan: ExperimentPlan, seed: int) -> tuple[SimulatedRun, ...]:
    """Run one seed under each policy, every one from where the default scheduler first put the trials.

    A policy that places trials itself is the only one that starts from elsewhere.
    """
    workload = plan.experiment.workload(seed)
    work = {trial.id: trial.work_s for trial in workload.trials}
    steps = {trial.id: len(trial.reports) for trial in workload.trials}
    pinned = first_nodes(plan.experiment, workload, seed)
    stops = dict.fromkeys((trial.sweep for trial in workload.trials), plan.stops)
    timed = any(measure.of_reports for measure in (*plan.experiment.measures, *plan.measures))
    runs = []
    for policy in plan.effective():
        given = {} if Place in policy.needs else pinned
        scenario = Scenario(workload, plan.experiment.costs, seed, given)
        surrogate = plan.experiment.surrogate(seed)
        informed = inform(policy, work, steps)
        runs.append(simulate(scenario, informed, surrogate=surrogate, keep_times=timed, stops=stops))
    return tuple(runs)


def first_nodes(experiment: Setup, workload: Workload, seed: int) -> Mapping[TrialId, NodeName]:
    """Return where each trial starts if nothing but the default scheduler decides."""
    scenario, surrogate = Scenario(workload, experiment.costs, seed), experiment.surrogate(seed)
    run = simulate(scenario, experiment.scheduler(seed), surrogate=surrogate)
    # A node that comes and goes is called differently in every run: no trial can wait for it.
    staying = {node.name for node in workload.nodes}
    firsts = ((TrialId(trial.id), NodeName(trial.first_node)) for trial in run.result.trials)
    return {trial: node for trial, node in firsts if node in staying}


def run_plans(
    plans: Sequence[ExperimentPlan], seeds: Sequence[int], done: Callable[[int], None], processes: int | None = None
) -> tuple[PolicySummary, ...]:
    """Run every plan for every seed and return a summary for each policy of each.

    Args:
        plans: What to run.
        seeds: The seeds, each giving one workload of each experiment.
        done: Told the number of runs each time that some are done.
        processes: How many to use; None for one on each core.
    """
    tasks = [(plan, seed) for plan in plans for seed in seeds]
    results: dict[tuple[int, int], tuple[RunFigures, ...]] = {}
    for number, figures in _each(tasks, processes or cores_here()):
        results[divmod(number, len(seeds))] = figures
        done(len(figures))
    return tuple(
        PolicySummary(
            plan.experiment.id,
            spec,
            policy_spec(policy),
            place == 0,
            tuple(results[position, seed][place] for seed in range(len(seeds))),
        )
        for position, plan in enumerate(plans)
        for place, (spec, policy) in enumerate(zip(plan.policies, plan.effective(), strict=True))
    )


def to_json(summaries: Iterable[PolicySummary]) -> dict[str, Any]:
    """Return what ``specon simulate --json`` writes."""
    return {"experiments": [summary.to_dict() for summary in summaries]}


def _each(tasks: Sequence[tuple[ExperimentPlan, int]], processes: int) -> Iterable[tuple[int, tuple[RunFigures, ...]]]:
    if min(processes, len(tasks)) <= 1:
        for number, (plan, seed) in enumerate(tasks):
            yield number, run_seed(plan, seed)
        return
    with worker_pool(processes) as pool:
        numbers = {pool.submit(run_seed, plan, seed): number for number, (plan, seed) in enumerate(tasks)}
        for future in as_completed(numbers):
            yield numbers[future], future.result()


def _figures(ran: ComparedRun, bounds: tuple[float, float], measures: Sequence[RunMeasure]) -> RunFigures:
    result = ran.run.result
    against = compare(ran.baseline.result, result)
    return RunFigures(
        makespan_s=result.makespan_s,
        mean_completion_s=result.mean_completion_s,
        median_completion_s=result.median_completion_s,
        makespan_change=against.makespan_ratio - 1,
        mean_change=against.mean_ratio - 1,
        faster_share=against.faster_share,
        worst_loser=against.worst_loser,
        bound_ratio=result.makespan_s / bounds[0],
        mean_bound_ratio=result.mean_completion_s / bounds[1],
        moves=sum(trial.moves for trial in result.trials),
        resizes=sum(trial.resizes for trial in result.trials),
        cut_short=statistics.fmean(bool(trial.stopped) for trial in result.trials),
        # A change against the baseline says nothing of the baseline itself.
        measures={
            measure.name: None if measure.unit == "change" and ran.run is ran.baseline else measure.of(ran)
            for measure in measures
        },
    )


def _own_measure(name: str, figures: RunFigures) -> float | None:
    return figures.measures[name]
