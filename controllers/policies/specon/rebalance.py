"""Algorithm 5 of the thesis: spread what is left once nothing grows quickly any more."""

import math
from collections.abc import Iterator, Mapping

from controllers.core.model import NodeName, TrialId
from controllers.policies.specon.placement import Board


def rebalance(board: Board, settled_at: Mapping[TrialId, float]) -> Iterator[tuple[TrialId, NodeName]]:
    """Yield moves, each counted on ``board`` before the next is looked for.

    An idle node takes trials while it has fewer than ``ceil(bf)``, where bf is trials per ready node. With
    no idle node, each that has fewer than ``floor(bf) - 1`` takes trials up to that. A trial comes from a
    node above bf with at least two more than the receiving one, so that no move makes a new imbalance;
    the one that settled last goes first, as it has the most left to do.

    Args:
        board: Where the live trials are; changed as moves are yielded.
        settled_at: When each trial that may still be moved settled, in seconds.
    """
    nodes = board.ready()
    if not nodes:
        return
    balance = len(board.places) / len(nodes)
    idle = [node for node in nodes if not board.count(node)]
    limit = math.ceil(balance) if idle else math.floor(balance) - 1
    movable = dict(settled_at)
    for node in idle or nodes:
        while board.count(node) < limit and (trial := _donated(board, movable, node, balance)):
            del movable[trial]
            board.move(trial, node)
            yield trial, node


def _donated(board: Board, movable: Mapping[TrialId, float], node: NodeName, balance: float) -> TrialId | None:
    """Return the trial that settled last among those that ``node`` may take."""
    receiving = board.count(node)
    offered = [
        trial
        for trial in movable
        if all(board.count(source) > max(balance, receiving + 1) for source in board.places[trial])
        and board.ledger.fits(board.ledger.trials[trial], node)
    ]
    return min(offered, key=lambda trial: (-movable[trial], trial), default=None)
