"""Places for the trials that wait, one after another. Pure."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Final

from controllers.core.actions import Proposal
from controllers.core.model import NodeName, Trial
from controllers.policies.ahead.order import Length, Queue, Waiting, longest_to_fastest, starting_order
from controllers.policies.ahead.planning import CONSIDERED, WorkPlan
from controllers.policies.ahead.tally import NodeLine
from controllers.policies.kit.capacity import RequestShape, request_shape
from controllers.policies.kit.places import waiting

MUCH_CONTENTION: Final = 0.05
"""Part of its speed that a trial loses to each further one from which on trials wait rather than share a full node."""
WIDEST: Final = 4.0
"""A trial counts as at most this many times as wide as the mean of those that wait: so others stop overtaking it."""


def place_trials(plan: WorkPlan) -> Iterator[Proposal]:
    """Yield a place for each trial that waits and fits somewhere, in the order of ``starting_order``.

    It is the node on which it costs all trials the least. Of several, it is the one where the most cores are left
    over, as the trial may be able to use more than is known. A trial that fits nowhere waits on and does not hold
    up a smaller one. Where devices are unlike, the longest of those that start now chooses first.
    """
    lines: dict[RequestShape, NodeLine] = {}
    queues = _queues(plan)
    order = starting_order(queues, protect_end=plan.weights.end > 0)
    for name in longest_to_fastest(queues, order) if plan.weights.devices.unlike else order:
        trial = plan.estimates[name].trial
        shape = request_shape(trial)
        if shape not in lines:
            lines[shape] = NodeLine(plan.tally, partial(_has_room, plan, trial))
        near = lines[shape].first(CONSIDERED)
        if not near:
            plan.unplaced.append(trial)
            continue
        after = {node: plan.forecast(node, plan.load_to_come(name, node)) for node in near}
        costs = {node: plan.tally.cost({node: forecast}) for node, forecast in after.items()}
        best = min(after, key=lambda node: (costs[node], -plan.unused(node), _crowded(plan, node), node))
        yield Proposal(plan.place(name, best, after[best]), f"placing: it costs all trials the least on {best}")


def _crowded(plan: WorkPlan, node: NodeName) -> float:
    return len(plan.loads[node]) / plan.cores[node]


def _has_room(plan: WorkPlan, trial: Trial, node: NodeName) -> bool:
    return plan.takes(trial, node) and not _held_back(plan, node)


def _held_back(plan: WorkPlan, node: NodeName) -> bool:
    """Whether one more trial would only slow down those of ``node``: they can use all of it, and contend for it."""
    if plan.weights.contention < MUCH_CONTENTION:
        return False
    return plan.unused(node) <= 0


def _queues(plan: WorkPlan) -> list[Queue]:
    """Return the trials that wait, those that ask for the same together, each with what there is for them."""
    queues: dict[RequestShape, list[Trial]] = {}
    for trial in waiting(plan.snapshot):
        queues.setdefault(_authors_shape(trial), []).append(trial)
    if not queues:
        return []
    busy: dict[RequestShape, list[Length]] = {shape: [] for shape in queues}
    for node, loads in plan.loads.items():
        for name in loads:
            if (shape := _authors_shape(plan.estimates[name].trial)) in busy:
                busy[shape].append(plan.length(name, plan.cores[node]))
    ended = Counter(_authors_shape(trial) for trial in plan.snapshot.trials if trial.phase.ended)
    largest = max(plan.cores.values(), default=1.0)
    parts = {shape: _part(plan, shape) for shape in queues}
    mean = sum(parts[shape] * len(trials) for shape, trials in queues.items()) / sum(map(len, queues.values()))
    wide = {shape: min(WIDEST, part / mean) if mean else 1.0 for shape, part in parts.items()}
    return [
        Queue(
            [Waiting(trial.id, trial.submitted_at, plan.length(trial.id, largest), wide[shape]) for trial in trials],
            busy[shape],
            sum(plan.room(trials[0], node) for node in plan.cores),
            ended[shape],
        )
        for shape, trials in queues.items()
    ]


def _part(plan: WorkPlan, shape: RequestShape) -> float:
    """Return the part of all nodes that a trial asks for, of what it asks the greatest part of."""
    cpu, memory, devices, _ = shape
    nodes = [node for node in plan.snapshot.nodes if node.name in plan.cores]
    asked = [(cpu, sum(node.cpu for node in nodes)), (memory, sum(node.memory for node in nodes))]
    asked += [(count, sum(node.devices.count(kind) for node in nodes)) for kind, count in devices.counts]
    return max(some / total if total else 0.0 for some, total in asked)


def _authors_shape(trial: Trial) -> RequestShape:
    """Return what a trial asks for as its author wrote it: that of one that runs may have changed since."""
    return trial.base_cpu * trial.workers, trial.memory * trial.workers, trial.devices * trial.workers, trial.may_use
