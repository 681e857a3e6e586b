"""What a sweep costs by a deadline: on nodes that come and go, and on as many of the same that are there all the time.

Both are given the best number of nodes in hindsight, as a planner that knows the lengths would choose it.
"""

from dataclasses import dataclass, replace
from typing import Final

from controllers.core.model import NodeName
from controllers.lab.simulation.experiments.curve_families import Family
from controllers.lab.simulation.experiments.elastic_experiments import CHECKPOINT_S, CORES, PRICE, ElasticSweep
from controllers.lab.simulation.run import simulate
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, TrialSpec, Workload

NODES: Final = (1, 2, 3, 4, 5)
LATER: Final = (1.1, 1.5, 2.0)
"""Deadlines, as multiples of the makespan under the default scheduler on the most nodes that are always there."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """A sweep under ``policy`` on up to ``nodes`` nodes, which are there all the time if ``static``.

    ``sweep`` names the trials: ``lengths`` are heavy-tailed trials that all train to their end, ``best model`` are
    learning curves: a policy may stop those that will not be the best.
    """

    sweep: str
    policy: str
    nodes: int
    static: bool

    def run(self, seed: int) -> tuple[float, float]:
        """Return makespan in seconds and cost of the sweep of ``seed``."""
        node = NodeSpec(NodeName("node"), CORES, price=PRICE)
        group = NodeGroup(node, self.nodes, self.nodes if self.static else 0)
        workload = Workload(_trials(self.sweep, seed), (), groups=(group,))
        run = simulate(Scenario(workload, Costs.argo(), seed), parse_policy(self.policy))
        return run.result.makespan_s, run.bill.cost or 0.0


def _trials(sweep: str, seed: int) -> tuple[TrialSpec, ...]:
    if sweep == "lengths":
        return ElasticSweep(60, 1).workload(seed).trials
    drawn = Family(60, 4).workload(seed).trials
    # Six times as long as there, so that a trial takes half an hour as a rule.
    return tuple(_longer(trial) for trial in drawn)


def _longer(trial: TrialSpec) -> TrialSpec:
    reports = tuple(replace(report, work_s=report.work_s * 6) for report in trial.reports)
    return replace(trial, work_s=trial.work_s * 6, reports=reports, checkpoint_every_s=CHECKPOINT_S)


def cheapest(found: dict[int, tuple[float, float]], deadline_s: float) -> float | None:
    """Return the least cost of those ``found`` (makespan and cost by nodes) that end by the deadline; None if none."""
    return min((cost for makespan, cost in found.values() if makespan <= deadline_s), default=None)
