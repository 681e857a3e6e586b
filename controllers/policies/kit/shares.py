"""Splitting the CPU of a node again among its trials: the sum of their requests stays as it was."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from controllers.core.actions import Clone, Migrate, Place, Proposal, Resize, Stop, Suspend
from controllers.core.model import NodeName, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Capacity

LEAST_CHANGE = 0.001
"""Cores: requests are counted in thousandths of a core, so a smaller change is none."""


@dataclass(frozen=True, slots=True)
class SharedNode:
    """A node's trials that may be resized, with the cores that are theirs to share."""

    members: tuple[Trial, ...]
    budget: float

    @property
    def names(self) -> tuple[TrialId, ...]:
        """The members by name."""
        return tuple(trial.id for trial in self.members)

    def requests(self, shares: Mapping[TrialId, float], min_change: float, min_cpu: float) -> dict[TrialId, float]:
        """Return the new request per worker, in cores, of each member for which the change is worth making.

        Args:
            shares: Part of the budget for each member, all together at most 1.
            min_change: Least change that is worth it, as a part of the request.
            min_cpu: Least request of a worker, in cores.
        """

        def worth_it(trial: Trial, cpu: float) -> bool:
            return abs(cpu - trial.cpu) >= max(min_change * trial.cpu, LEAST_CHANGE)

        now = {trial.id: trial.cpu * len(trial.nodes) for trial in self.members}
        wanted: dict[TrialId, float] = {}
        for trial in self.members:
            each = max(shares[trial.id] * self.budget / len(trial.nodes), min_cpu)
            wanted[trial.id] = (each if worth_it(trial, each) else trial.cpu) * len(trial.nodes)
        granted = within_budget(now, wanted, self.budget)
        each_granted = {trial.id: granted[trial.id] / len(trial.nodes) for trial in self.members}
        return {trial.id: each_granted[trial.id] for trial in self.members if worth_it(trial, each_granted[trial.id])}


def shared_nodes(snapshot: Snapshot) -> Mapping[NodeName, SharedNode]:
    """Return the nodes that have trials to resize, by name; trials on several nodes are left out."""
    capacity = Capacity.of(snapshot)
    return {name: shared_node(members, capacity) for name, members in sharers(snapshot).items()}


def sharers(snapshot: Snapshot) -> Mapping[NodeName, tuple[Trial, ...]]:
    """Return for each node, by name, its trials that may be resized; trials on several nodes are left out."""
    members: dict[NodeName, list[Trial]] = {}
    for trial in snapshot.unended:
        if trial.steady and (len(trial.nodes) == 1 or len(set(trial.nodes)) == 1):
            members.setdefault(trial.nodes[0], []).append(trial)
    return {node.name: tuple(members[node.name]) for node in snapshot.nodes if node.name in members}


def shared_node(members: tuple[Trial, ...], capacity: Capacity) -> SharedNode:
    """Return the node of ``members``, the trials that may be resized there, with what is theirs of its cores."""
    name = members[0].nodes[0]
    asked = sum(trial.base_cpu * len(trial.nodes) for trial in members)
    others = capacity.requested(name) - sum(trial.cpu * len(trial.nodes) for trial in members)
    return SharedNode(members, max(0.0, min(asked, capacity.nodes[name].cpu - others)))


def within_budget(now: Mapping[TrialId, float], wanted: Mapping[TrialId, float], budget: float) -> dict[TrialId, float]:
    """Return ``wanted`` with its increases cut evenly until all of it fits ``budget``.

    Both hold every trial of the node, in cores over all workers. A request that stays as it was, because the change
    was small or below the least request, may keep the others from all that they should get.
    """
    increase = sum(max(0.0, wanted[trial] - now[trial]) for trial in wanted)
    excess = sum(wanted.values()) - budget
    if excess <= 0 or increase == 0:
        return dict(wanted)
    granted = max(0.0, 1 - excess / increase)
    return {trial: min(cpu, now[trial] + max(0.0, cpu - now[trial]) * granted) for trial, cpu in wanted.items()}


def shrinks_first(proposals: Iterable[Proposal], snapshot: Snapshot) -> tuple[Proposal, ...]:
    """Return ``proposals`` in an order that never asks for more of a node than it ends up with."""

    def grows(proposal: Proposal) -> bool:
        match proposal.action:
            case Resize() as resize:
                return resize.cpu > snapshot.named[resize.trial].cpu
            case Migrate() | Place() | Suspend() | Stop() | Clone():
                return False
            case _ as other:
                assert_never(other)

    return tuple(sorted(proposals, key=grows))
