"""The fast scale: a node for each trial that waits. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from controllers.core.actions import Place, Proposal
from controllers.core.model import NodeName, Snapshot, Trial, TrialId
from controllers.policies.kais.choosing import Chooser, strange, strange_cluster
from controllers.policies.kais.grid import Bools, Floats
from controllers.policies.kais.network import Embedding
from controllers.policies.kais.weights import Trained
from controllers.policies.kit.places import waiting
from controllers.policies.kit.work_left import Estimate

PATIENCE: Final = 4.0
"""A trial is overtaken only by those submitted within this many times its own length after it."""
MOST_PLACED: Final = 400
"""Trials placed in one decision, so that none takes long; those that are left come next."""


def starting_order(snapshot: Snapshot, estimates: Mapping[TrialId, Estimate], most_cores: float) -> list[Trial]:
    """Return the trials that wait: of two that were submitted together the shorter first, and no trial always last."""

    def due(trial: Trial) -> tuple[float, float, TrialId]:
        estimate = estimates[trial.id]
        return (
            trial.submitted_at + PATIENCE * estimate.work / min(estimate.most, most_cores),
            trial.submitted_at,
            trial.id,
        )

    return sorted(waiting(snapshot), key=due)


def why_untrained(trial: Trial) -> str | None:
    """Return why the network knows nothing of such a trial; None where it does."""
    if trial.gang:
        return "it is a gang, and kais was trained on trials of one worker"
    if trial.devices:
        return f"it asks for {trial.devices}, and kais was trained on trials without devices"
    return None


def places(waiting_trials: list[Trial], embedding: Embedding, trained: Trained, chooser: Chooser) -> Iterator[Proposal]:
    """Yield a place for each trial that fits somewhere, each with those before it counted in.

    It is the node of the best score. Where anything lies outside of what the network was trained on, the default
    scheduler chooses.
    """
    scene, numbers = embedding.scene, {name: number for number, name in enumerate(embedding.scene.trials)}
    odd = strange_cluster(trained, scene)
    for trial in waiting_trials[:MOST_PLACED]:
        number = numbers[trial.id]
        roomy = scene.fits(number)
        if not roomy.any():
            continue
        pairs = scene.pair_rows(number)
        why = odd or why_untrained(trial) or strange(trained, "trial", embedding.trial_rows[number][None])
        why = why or strange(trained, "pair", pairs[roomy])
        if why:
            yield Proposal(Place(trial.id), f"placing: left to the default scheduler, since {why}")
            continue
        scores = np.where(roomy, embedding.places(number, pairs), -np.inf)
        node = chooser.place(embedding, number, pairs, scores)
        yield Proposal(Place.on(scene.nodes[node], trial), _reason(scene.nodes, node, scores, roomy))
        scene.attach(number, node)
        embedding.update(node)


def _reason(names: list[NodeName], node: int, scores: Floats, roomy: Bools) -> str:
    others = np.where(np.arange(len(scores)) == node, -np.inf, scores)
    next_best = int(np.argmax(others))
    beside = f"next best {names[next_best]} {scores[next_best]:.2f}" if roomy.sum() > 1 else "no other has room"
    return f"placing: {names[node]} scores {scores[node]:.2f}, {beside}"
