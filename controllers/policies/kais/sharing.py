"""The slow scale: in which way each node is shared. Pure."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import numpy as np

from controllers.core.actions import Proposal, Resize
from controllers.core.model import NodeName, TrialId
from controllers.policies.kais.choosing import Chooser, strange_cluster
from controllers.policies.kais.network import WAYS, Embedding
from controllers.policies.kais.weights import Trained
from controllers.policies.kit.allocation import allocate
from controllers.policies.kit.shares import SharedNode
from controllers.policies.kit.work_left import Estimate

FLOOR: Final = 0.05
"""Part of a node that all its trials share evenly, whatever the way."""
HEADROOM: Final = 1.1
"""A trial gets this many times the cores that are worth offering to it: it may be able to use a little more."""
LEAST_OF_NODE: Final = 0.02
"""A request changes by at least this part of what the node's trials may share."""


class Way(NamedTuple):
    """A way to share a node: how much more those in front get (``allocate``), and whether the longest stand there."""

    words: str
    exponent: float
    longest_first: bool = False


EVERY_WAY: Final = (
    Way("evenly", 1.0),
    Way("a little more to the shortest", 2.0),
    Way("more to the shortest", 4.0),
    Way("all that it can use to the shortest", math.inf),
    Way("all that it can use to the longest", math.inf, longest_first=True),
)
assert len(EVERY_WAY) == WAYS  # noqa: S101 - two constants of this package


def shares(
    nodes: Mapping[NodeName, SharedNode],
    estimates: Mapping[TrialId, Estimate],
    new: AbstractSet[TrialId],
    embedding: Embedding,
    trained: Trained,
    chooser: Chooser,
) -> dict[NodeName, tuple[str, dict[TrialId, float]]]:
    """Return for each of ``nodes`` why it is shared as it is, and each trial's part of it.

    Args:
        nodes: The nodes whose cores are to be shared again.
        estimates: Of every trial that has not ended.
        new: The trials whose first report is awaited: they go first, since it tells how long they are.
        embedding: What there is.
        trained: The network, and what it was trained on.
        chooser: Chooses by scores.
    """
    scene = embedding.scene
    numbers = {name: number for number, name in enumerate(scene.nodes)}
    known = [name for name in nodes if name in numbers]
    if not known or strange_cluster(trained, scene):
        return {}
    chosen = np.array([numbers[name] for name in known], dtype=np.int64)
    scores = embedding.ways(chosen)
    by_node: dict[NodeName, tuple[str, dict[TrialId, float]]] = {}
    for place, number in enumerate(chooser.ways(embedding, chosen, scores)):
        name, way, row = known[place], EVERY_WAY[int(number)], scores[place]
        second = int(np.argmax(np.where(np.arange(WAYS) == number, -np.inf, row)))
        why = f"{way.words} scores {row[number]:.2f}, {EVERY_WAY[second].words} {row[second]:.2f}"
        cores = float(scene.cores[numbers[name]])
        by_node[name] = why, _parts(nodes[name].names, way, estimates, new, cores)
    return by_node


def resizes(
    node: SharedNode, parts: Mapping[TrialId, float], why: str, min_change: float, min_cpu: float
) -> list[Proposal]:
    """Return the resizes that give each trial of ``node`` its part; small changes are left out."""
    if node.budget <= 0:
        return []
    now = {trial.id: trial for trial in node.members}
    return [
        Proposal(Resize(name, cpu), f"sharing: {why}")
        for name, cpu in node.requests(parts, min_change, min_cpu).items()
        if abs(cpu - now[name].cpu) * len(now[name].nodes) >= LEAST_OF_NODE * node.budget
    ]


def _parts(
    names: Sequence[TrialId],
    way: Way,
    estimates: Mapping[TrialId, Estimate],
    new: AbstractSet[TrialId],
    cores: float,
) -> dict[TrialId, float]:
    """Return each trial's part of a node, in the line that ``way`` makes of them; together 1."""
    sign = -1.0 if way.longest_first else 1.0
    line = sorted(names, key=lambda name: (name not in new, sign * estimates[name].work, name))
    mosts = [HEADROOM * min(estimates[name].worth_offering, cores) for name in line]
    given = allocate(mosts, cores * (1 - FLOOR), way.exponent)
    even = cores * FLOOR / len(line)
    total = math.fsum(given) + cores * FLOOR
    return {name: (amount + even) / total for name, amount in zip(line, given, strict=True)}
