"""The slow scale: which trials go elsewhere. Pure."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from controllers.core.actions import Migrate, Proposal
from controllers.core.model import TrialId
from controllers.policies.kais.choosing import Chooser, strange, strange_cluster
from controllers.policies.kais.grid import Ints
from controllers.policies.kais.network import Embedding
from controllers.policies.kais.weights import Trained

CONSIDERED: Final = 8
"""Nodes on either side, and trials of each source, that are looked at."""
AT_ONCE: Final = 8
"""Moves that one look brings at most."""
NEARLY_DONE: Final = 2.0
"""A trial that has less left than this many times what a move costs stays: it would be done before it pays."""


def moves(
    movable: AbstractSet[TrialId], room: int, embedding: Embedding, trained: Trained, chooser: Chooser, move_cost: float
) -> Iterator[Proposal]:
    """Yield the moves that score more than to stay, the best first, each with those before it counted in.

    Args:
        movable: The trials that may move.
        room: How many may be on their way beside those that are.
        embedding: What there is.
        trained: The network, and what it was trained on.
        chooser: Chooses by scores.
        move_cost: The seconds that a move takes.
    """
    scene, left = embedding.scene, set(movable)
    if not left or strange_cluster(trained, scene):
        return
    for _ in range(min(room, AT_ONCE)):
        trials, targets = _candidates(embedding, left, move_cost)
        if not len(trials):
            return
        rows = np.concatenate(
            [scene.move_rows(int(trial), targets[trials == trial], move_cost) for trial in dict.fromkeys(trials)]
        )
        if strange(trained, "move", rows) or strange(trained, "trial", embedding.trial_rows[trials]):
            return
        scores = embedding.moves(trials, targets, rows)
        chosen = chooser.move(embedding, trials, targets, rows, scores)
        if chosen == len(scores):
            return
        trial, target = int(trials[chosen]), int(targets[chosen])
        source, name = int(scene.at[trial]), scene.trials[trial]
        beside = np.where(trials == trial, scores, -np.inf)
        beside[chosen] = -np.inf
        second = int(np.argmax(beside))
        other = f", {scene.nodes[targets[second]]} {scores[second]:.2f}" if beside[second] > -np.inf else ""
        where = f"{scene.nodes[target]} scores {scores[chosen]:.2f}{other}"
        why = f"moving: {where}, to stay on {scene.nodes[source]} 0.00"
        yield Proposal(Migrate(name, (scene.nodes[target],)), why)
        left.remove(name)
        scene.attach(trial, target)
        embedding.update(source, target)


def _candidates(embedding: Embedding, movable: AbstractSet[TrialId], move_cost: float) -> tuple[Ints, Ints]:
    """Return trials and targets of the moves to consider: from the busiest nodes to those that are least so."""
    scene = embedding.scene
    loads = scene.loads() / scene.cores
    order = np.argsort(loads, kind="stable")
    short = scene.demands() > 1.0  # elsewhere each has all that it can use, and nobody gains where one leaves
    sources = [int(node) for node in order[::-1] if short[node]][:CONSIDERED]
    pairs: list[tuple[int, int]] = []
    for source in sources:
        there = [int(trial) for trial in np.flatnonzero(scene.at == source) if scene.trials[int(trial)] in movable]
        worth = [trial for trial in there if scene.work[trial] > NEARLY_DONE * move_cost * scene.most[trial]]
        for trial in sorted(worth, key=lambda trial: -scene.work[trial])[:CONSIDERED]:
            fits = scene.fits(trial)
            emptier = [int(node) for node in order[:CONSIDERED] if fits[node] and loads[node] < loads[source]]
            pairs += [(trial, node) for node in sorted(emptier) if node != source]
    candidates = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return candidates[:, 0], candidates[:, 1]
