"""Strict order on each node by shares alone: the comparison policies differ only in who goes first."""

from collections.abc import Callable, Iterator
from typing import Any

from controllers.core.model import Proposal, Resize, Snapshot, Trial
from controllers.policies.kit.node_shares import NodeShares, node_shares, shrinks_first

NEXT_IN_LINE = 0.01
"""Share of each trial as a part of the one before it: near enough to nothing, and nobody stands still for ever."""
MIN_CPU = 0.01
MIN_CHANGE = 0.05
Rank = Callable[[Trial], Any]


def in_order(snapshot: Snapshot, rank: Rank, reason: str) -> tuple[Proposal, ...]:
    """Return the resizes that give each node's CPU to the trial of least ``rank``; what it can't use, the next may."""
    found = (proposal for node in node_shares(snapshot).values() for proposal in _line(node, rank, reason))
    return shrinks_first(found, snapshot)


def evenly(snapshot: Snapshot, reason: str) -> tuple[Proposal, ...]:
    """Return the resizes that give each trial of a node the same."""
    found = (
        Proposal(Resize(name, cpu), f"{reason}: one of {len(node.members)}")
        for node in node_shares(snapshot).values()
        for name, cpu in node.requests(dict.fromkeys(node.names, 1 / len(node.members)), MIN_CHANGE, MIN_CPU).items()
    )
    return shrinks_first(found, snapshot)


def _line(node: NodeShares, rank: Rank, reason: str) -> Iterator[Proposal]:
    line = [trial.id for trial in sorted(node.members, key=lambda trial: (rank(trial), trial.id))]
    weights = {name: NEXT_IN_LINE**place for place, name in enumerate(line)}
    total = sum(weights.values())
    budget = node.budget
    floor = min(1.0, len(line) * MIN_CPU / budget) if budget else 1.0
    shares = {name: floor / len(line) + (1 - floor) * weight / total for name, weight in weights.items()}
    for name, cpu in node.requests(shares, MIN_CHANGE, MIN_CPU).items():
        yield Proposal(Resize(name, cpu), f"{reason}: number {line.index(name) + 1} of {len(line)}")
