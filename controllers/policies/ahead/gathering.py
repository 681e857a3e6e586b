"""Moves that empty a node, so that it can go: at a sweep's end, few trials keep many nodes alive. Pure.

An autoscaler removes what nobody uses, and each hour of a node costs. Where the trials of the other nodes leave cores
unused, a node's trials can go there and nobody gets slower. Only nodes that can go are emptied: a cluster without any
sees none of this.
"""

import math
from collections.abc import Callable, Container, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from controllers.core.actions import Migrate, Proposal
from controllers.core.model import Node, NodeName, TrialId
from controllers.policies.ahead.planning import WORTH, WorkPlan

MOST_CONTENTION: Final = 0.05
"""Where each further trial of a node costs the others more than this part of their speed, none are gathered."""


def gather_trials(plan: WorkPlan, movable: AbstractSet[TrialId]) -> Iterator[Proposal]:
    """Yield the moves of ``movable`` trials that empty one node, the one that is the least to empty, if one pays.

    It pays if the node would be kept for more than twice as long as all the moves take.
    """
    trials = plan.snapshot.unended
    kinds = {kind.name for kind in plan.snapshot.kinds if kind.name}
    elastic = {node.name: node for node in plan.snapshot.nodes if node.kind in kinds}
    if not elastic or plan.weights.contention > MOST_CONTENTION or not all(trial.steady for trial in trials):
        return
    for source in sorted((node for node in elastic.values() if plan.loads.get(node.name)), key=_cheapest(plan)):
        targets = _targets(plan, source.name, elastic) if _may_empty(plan, source.name, movable) else {}
        if targets:
            why = f"gathering: {source.name} can go, and is kept for {plan.forecasts[source.name].last:.0f} s otherwise"
            yield from [Proposal(plan.move(name, target), why) for name, target in targets.items()]
            return


def _cheapest(plan: WorkPlan) -> Callable[[Node], tuple[float, int, float, NodeName]]:
    """Return the rank of nodes to empty: the dearest first, then those with the fewest trials and the least work."""

    def rank(node: Node) -> tuple[float, int, float, NodeName]:
        loads = plan.loads[node.name]
        return -(node.price or 0.0), len(loads), math.fsum(work for work, _ in loads.values()), node.name

    return rank


def _may_empty(plan: WorkPlan, source: NodeName, movable: AbstractSet[TrialId]) -> bool:
    """Whether each trial of a node may move, has enough left for that, and the node is kept for long enough."""
    names = plan.loads[source]
    moves = all(name in movable and not plan.estimates[name].trial.gang and plan.worth_moving(name) for name in names)
    return moves and plan.forecasts[source].last > WORTH * plan.weights.move_cost * len(names)


def _targets(plan: WorkPlan, source: NodeName, elastic: Container[NodeName]) -> dict[TrialId, NodeName]:
    """Return where the trials of ``source`` go so that nobody gets slower; empty where not all of them can."""
    capacity = plan.capacity.copy()
    unused = {
        node: plan.unused(node) for node in plan.cores if node != source and (plan.loads[node] or node not in elastic)
    }
    loads, targets = plan.loads[source], dict[TrialId, NodeName]()
    for name in sorted(loads, key=lambda name: (-loads[name][1], name)):
        trial, needs = plan.estimates[name].trial, min(loads[name][1], plan.cores[source])
        roomy = [node for node, cores in unused.items() if cores >= needs and capacity.fits(trial, node)]
        if not roomy:
            return {}
        targets[name] = target = min(roomy, key=lambda node: (node in elastic, unused[node], node))
        unused[target] -= needs
        capacity.apply(Migrate.to(target, trial))
    return targets
