"""Placement rules: first attempts that wait for a place go where that costs the least."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from controllers.core.model import Node, NodeName, Phase, Place, Proposal, Snapshot, Trial, TrialId
from controllers.policies.kit.occupancy import Occupancy
from controllers.policies.wrappers.pinned import waits

NodeCost = Callable[[Node, Sequence[Trial]], float]
"""What a node costs a trial that comes to it, by the trials that are there."""


def starting(snapshot: Snapshot, placed: Mapping[TrialId, NodeName]) -> dict[TrialId, NodeName]:
    """Return those of the trials ``placed`` that have yet to start: a placement rule must not forget them meanwhile.

    One that still waits for a place was refused it.
    """
    return {
        trial.id: placed[trial.id]
        for trial in sorted(snapshot.trials, key=lambda trial: trial.id)
        if trial.id in placed and trial.phase is Phase.PENDING and not trial.gated and not trial.nodes
    }


def places(
    snapshot: Snapshot, occupancy: Occupancy, cost: NodeCost, reason: Callable[[Node, float], str]
) -> Iterator[Proposal]:
    """Yield a place for each waiting trial that fits somewhere, in the order of submission; ``occupancy`` is kept up.

    It is the ready node of least ``cost`` that has room; of several, the one with the least of its CPU requested, then
    the first by name. A trial that fits nowhere waits on and does not hold up a smaller one.
    """
    ledger, nodes = occupancy.ledger, occupancy.ready()
    ranks = {node.name: _rank(node, occupancy, cost) for node in nodes}
    unfit: set[tuple[float, float]] = set()
    for trial in sorted(filter(waits, snapshot.trials), key=lambda trial: (trial.submitted_at, trial.id)):
        shape = (max(trial.cpu, trial.base_cpu) * trial.workers, trial.memory * trial.workers)
        roomy = [] if shape in unfit else [node for node in nodes if ledger.fits(trial, node.name)]
        if not roomy:
            unfit.add(shape)
            continue
        node = min(roomy, key=lambda node: ranks[node.name])
        yield Proposal(Place(trial.id, node.name), reason(node, ranks[node.name][0]))
        occupancy.place(trial, node.name)
        ranks[node.name] = _rank(node, occupancy, cost)


def with_places(placed: Mapping[TrialId, NodeName], proposals: Sequence[Proposal]) -> dict[TrialId, NodeName]:
    """Return ``placed`` with the places that ``proposals`` give."""
    actions = [proposal.action for proposal in proposals]
    given = {one.trial: one.node for one in actions if isinstance(one, Place) and one.node is not None}
    return {**placed, **given}


def _rank(node: Node, occupancy: Occupancy, cost: NodeCost) -> tuple[float, float, NodeName]:
    return cost(node, occupancy.on(node.name)), occupancy.ledger.requested(node.name) / node.cpu, node.name
