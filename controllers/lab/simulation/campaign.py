"""Experiments x policies x seeds, over all cores, and what they come to."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any

from controllers.core.model import NodeName, Place, TrialId
from controllers.core.policy import Policy
from controllers.core.results import compare
from controllers.lab.simulation.bounds import makespan_bound, mean_completion_bound
from controllers.lab.simulation.experiment import Setup
from controllers.lab.simulation.measures import Measure, Ran
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.lab.simulation.statistics import Estimate, estimate
from controllers.lab.worker_pool import worker_pool
from controllers.policies.comparison.clairvoyant import informed
from controllers.policies.registry import parse_policy, policy_spec
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import Workload


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run came to: seconds, and parts of the same seed's run under the first policy.

    ``bound_ratio`` is the makespan, ``mean_bound_ratio`` the mean completion time, as a multiple of its lower bound.
    ``measures`` are the experiment's own, by name: None where there is nothing to measure or to compare with.
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


@dataclass(frozen=True, slots=True)
class Summary:
    """One policy in one experiment, over ``seeds`` seeds; the first policy of each experiment is the baseline.

    ``policy`` is as it was asked for, ``effective`` with the parameters that it had.
    """

    experiment: str
    policy: str
    effective: str
    baseline: bool
    runs: tuple[Figures, ...]

    @property
    def seeds(self) -> int:
        """How many seeds."""
        return len(self.runs)

    def over_seeds(self, figure: Callable[[Figures], float | None]) -> Estimate | None:
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
            "measures": {name: self._told(partial(_own_measure, name)) for name in self.runs[0].measures},
        }

    def _told(self, figure: Callable[[Figures], float | None]) -> dict[str, Any] | None:
        found = self.over_seeds(figure)
        return None if found is None else found.to_dict()


@dataclass(frozen=True, slots=True)
class Order:
    """An experiment and the policies to run it under, as they were asked for; the first is the baseline."""

    experiment: Setup
    policies: tuple[str, ...]

    def effective(self) -> tuple[Policy[Any], ...]:
        """Return the policies with the experiment's parameters wherever they were named without their own.

        Raises:
            UnknownPolicyError: One is not known.
            PolicyParameterError: A parameter of one is unknown or out of bounds.
        """
        return tuple(self.experiment.parameterised(parse_policy(spec)) for spec in self.policies)


def run_seed(order: Order, seed: int) -> tuple[Figures, ...]:
    """Return what each policy of ``order`` made of one seed."""
    runs = simulate_seed(order, seed)
    workload = order.experiment.workload(seed)
    bounds = (makespan_bound(workload), mean_completion_bound(workload))
    return tuple(_figures(Ran(workload, run, runs[0]), bounds, order.experiment.measures) for run in runs)


def simulate_seed(order: Order, seed: int) -> tuple[SimulatedRun, ...]:
    """Run one seed under each policy, every one from where the default scheduler first put the trials.

    A policy that places trials itself is the only one that starts from elsewhere.
    """
    workload = order.experiment.workload(seed)
    work = {trial.id: trial.work_s for trial in workload.trials}
    pinned = first_nodes(order.experiment, workload, seed)
    runs = []
    for policy in order.effective():
        given = {} if Place in policy.needs else pinned
        scenario = Scenario(workload, order.experiment.costs, seed, given)
        runs.append(simulate(scenario, informed(policy, work)))
    return tuple(runs)


def first_nodes(experiment: Setup, workload: Workload, seed: int) -> Mapping[TrialId, NodeName]:
    """Return where each trial starts if nothing but the default scheduler decides."""
    run = simulate(Scenario(workload, experiment.costs, seed), experiment.scheduler(seed))
    return {TrialId(trial.id): NodeName(trial.first_node) for trial in run.result.trials}


def run_orders(
    orders: Sequence[Order], seeds: Sequence[int], done: Callable[[int], None], processes: int | None = None
) -> tuple[Summary, ...]:
    """Run every order for every seed and return a summary for each policy of each.

    Args:
        orders: What to run.
        seeds: The seeds, each giving one workload of each experiment.
        done: Told the number of runs each time that some are done.
        processes: How many to use; None for one on each core.
    """
    tasks = [(order, seed) for order in orders for seed in seeds]
    results: dict[tuple[int, int], tuple[Figures, ...]] = {}
    for number, figures in _each(tasks, processes or len(os.sched_getaffinity(0))):
        results[divmod(number, len(seeds))] = figures
        done(len(figures))
    return tuple(
        Summary(
            order.experiment.id,
            spec,
            policy_spec(policy),
            place == 0,
            tuple(results[position, seed][place] for seed in range(len(seeds))),
        )
        for position, order in enumerate(orders)
        for place, (spec, policy) in enumerate(zip(order.policies, order.effective(), strict=True))
    )


def to_json(summaries: Iterable[Summary]) -> dict[str, Any]:
    """Return what ``specon simulate --json`` writes."""
    return {"experiments": [summary.to_dict() for summary in summaries]}


def _each(tasks: Sequence[tuple[Order, int]], processes: int) -> Iterable[tuple[int, tuple[Figures, ...]]]:
    if min(processes, len(tasks)) <= 1:
        for number, (order, seed) in enumerate(tasks):
            yield number, run_seed(order, seed)
        return
    with worker_pool(processes) as pool:
        numbers = {pool.submit(run_seed, order, seed): number for number, (order, seed) in enumerate(tasks)}
        for future in as_completed(numbers):
            yield numbers[future], future.result()


def _figures(ran: Ran, bounds: tuple[float, float], measures: Sequence[Measure]) -> Figures:
    result = ran.run.result
    against = compare(ran.baseline.result, result)
    return Figures(
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
        measures={measure.name: _measured(measure, ran) for measure in measures},
    )


def _own_measure(name: str, figures: Figures) -> float | None:
    return figures.measures[name]


def _measured(measure: Measure, ran: Ran) -> float | None:
    return None if measure.unit == "change" and ran.run is ran.baseline else measure.of(ran)
