"""Splitting what the trials of a node asked for anew: the sum of their requests stays as it was."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controllers.core.model import NodeName, Proposal, Resize, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Ledger

LEAST_CHANGE = 0.001
"""Cores: requests are counted in thousandths of a core, so a smaller change is none."""


@dataclass(frozen=True, slots=True)
class NodeShares:
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
        now = {trial.id: trial.cpu * len(trial.nodes) for trial in self.members}
        wanted = {
            trial.id: _wanted(trial, shares[trial.id] * self.budget, min_change, min_cpu) for trial in self.members
        }
        granted = settled(now, wanted, self.budget)
        each = {trial.id: granted[trial.id] / len(trial.nodes) for trial in self.members}
        return {trial.id: each[trial.id] for trial in self.members if _worth_it(trial, each[trial.id], min_change)}


def node_shares(snapshot: Snapshot) -> Mapping[NodeName, NodeShares]:
    """Return the nodes that have trials to resize, by name; trials on several nodes are left out."""
    ledger = Ledger.of(snapshot)
    members: dict[NodeName, list[Trial]] = {}
    for trial in sorted(snapshot.unended, key=lambda trial: trial.id):
        if trial.steady and trial.nodes.count(trial.nodes[0]) == len(trial.nodes) and trial.nodes[0] in ledger.nodes:
            members.setdefault(trial.nodes[0], []).append(trial)
    return {name: _of_node(ledger, name, tuple(members[name])) for name in sorted(members)}


def settled(now: Mapping[TrialId, float], wanted: Mapping[TrialId, float], budget: float) -> dict[TrialId, float]:
    """Return ``wanted`` with its increases cut evenly until all of it fits ``budget``.

    Both hold every trial of the node, in cores over all workers. What was left as it was, because the
    change was small or below the least request, may keep the others from all that they should get.
    """
    increase = sum(max(0.0, wanted[trial] - now[trial]) for trial in wanted)
    excess = sum(wanted.values()) - budget
    if excess <= 0 or increase == 0:
        return dict(wanted)
    granted = max(0.0, 1 - excess / increase)
    return {trial: min(cpu, now[trial] + max(0.0, cpu - now[trial]) * granted) for trial, cpu in wanted.items()}


def shrinks_first(proposals: Iterable[Proposal], snapshot: Snapshot) -> tuple[Proposal, ...]:
    """Return ``proposals`` in an order that never asks for more of a node than it ends up with."""
    now = {trial.id: trial.cpu for trial in snapshot.unended}
    return tuple(
        sorted(
            proposals,
            key=lambda proposal: (
                isinstance(proposal.action, Resize) and proposal.action.cpu > now[proposal.action.trial]
            ),
        )
    )


def _wanted(trial: Trial, cpu: float, min_change: float, min_cpu: float) -> float:
    """Return the cores of all workers: as many as ``cpu`` where that is a change worth making."""
    workers = len(trial.nodes)
    each = max(cpu / workers, min_cpu)
    return each * workers if _worth_it(trial, each, min_change) else trial.cpu * workers


def _worth_it(trial: Trial, cpu: float, min_change: float) -> bool:
    return abs(cpu - trial.cpu) >= max(min_change * trial.cpu, LEAST_CHANGE)


def _of_node(ledger: Ledger, name: NodeName, members: tuple[Trial, ...]) -> NodeShares:
    asked = sum(trial.base_cpu * len(trial.nodes) for trial in members)
    others = ledger.requested(name) - sum(trial.cpu * len(trial.nodes) for trial in members)
    return NodeShares(members, max(0.0, min(asked, ledger.nodes[name].cpu - others)))
