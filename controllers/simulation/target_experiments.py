"""Experiments with targets: of the objective (TRADL), and of the time that a step takes (DQoES).

The abstracts tell results and nothing of their workloads: these are ours. Ten trials share one node of 16 cores, of
which each can use all.
"""

import statistics
from typing import Any, Final

from controllers.goal_measures import fast_enough, satisfied, seconds_per_step, times_to_target
from controllers.goals import AskedGoals
from controllers.model import Direction, NodeName, TrialId
from controllers.policies.base import Policy
from controllers.simulated_run import simulate
from controllers.simulation.arrivals import UniformWindow, generator
from controllers.simulation.curves import BI_RNN, GRU, VAE
from controllers.worlds.simulated.costs import Costs
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import NodeSpec, Speedup, TrialSpec, Workload

TRIALS: Final = 10
NODE: Final = NodeSpec(NodeName("worker-1"), 16.0)
TOLERANCE: Final = 0.1
REPORTS: Final = 100
REACHED: Final = (0.8, 0.95)
"""Part of its whole reduction at which a trial's loss is good enough."""
SLOWER: Final = (3.0, 24.0)
"""How many times as long as alone a step may take: about as much as the node can give all of them together."""


def time_to_target(policy: Policy[Any], seed: int) -> float:
    """Return the mean seconds from submission to target of trials that come within 200 s."""
    workload = _targets(seed)
    run = simulate(Scenario(workload, Costs.argo(), seed), policy)
    goals = {str(trial.id): trial.goals for trial in workload.trials}
    return statistics.fmean(times_to_target(run.timeline, goals, Direction.MINIMIZE).values())


def satisfied_trials(policy: Policy[Any], seed: int) -> tuple[int, int]:
    """Return how many trials had the time per step that they asked for, and how many that or a shorter one."""
    workload = _paces(seed)
    run = simulate(Scenario(workload, Costs.argo(), seed), policy)
    goals = {str(trial.id): trial.goals for trial in workload.trials}
    took = seconds_per_step(run.timeline)
    return len(satisfied(took, goals, TOLERANCE)), len(fast_enough(took, goals, TOLERANCE))


def _targets(seed: int) -> Workload:
    chance = generator(seed, "targets")
    trials = []
    for number, at in enumerate(UniformWindow(200.0).times(TRIALS, generator(seed, "targets", "arrivals"))):
        curve, work = chance.choice((BI_RNN, GRU, VAE)), chance.uniform(100.0, 300.0)
        target = curve.first - (curve.first - curve.last) * chance.uniform(*REACHED)
        reports = curve.reports(work, REPORTS, chance)
        name, speedup = TrialId(f"job-{number + 1:02d}"), Speedup.linear(NODE.cpu)
        trials.append(TrialSpec(name, at, work, reports, 1.0, speedup, goals=AskedGoals(target=target)))
    return Workload(tuple(trials), (NODE,))


def _paces(seed: int) -> Workload:
    chance = generator(seed, "paces")
    trials = []
    for number in range(TRIALS):
        work = chance.uniform(100.0, 300.0)
        goals = AskedGoals(seconds_per_step=work / REPORTS * chance.uniform(*SLOWER))
        reports = VAE.reports(work, REPORTS, chance)
        name, speedup = TrialId(f"job-{number + 1:02d}"), Speedup.linear(NODE.cpu)
        trials.append(TrialSpec(name, 0.0, work, reports, 1.0, speedup, goals=goals))
    return Workload(tuple(trials), (NODE,))
