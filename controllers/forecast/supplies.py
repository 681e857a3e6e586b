"""What the nodes of a sweep may give its trials from now on, where others use them too: by what they gave so far. Pure.

Nobody knows when a neighbour comes or goes. What was seen of late is what may come again: so a part of the courses goes
on as it is now, and in the others each node gives something between the least and the most that it gave.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controllers.core.model import Node, NodeName, Snapshot
from controllers.forecast.guesses import uniform

STAYS: Final = 0.5
"""Chance that the nodes give from now on what they give now."""
REMEMBERED_S: Final = 300.0
"""Seconds after which two thirds of what a node once gave is forgotten; in a long sweep half of its time so far."""


@dataclass(frozen=True, slots=True)
class Gave:
    """The least and the most that a node gave of late, as parts of its cores."""

    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Supplies:
    """What the nodes gave until ``at``, in seconds of the sweep's clock."""

    at: float = 0.0
    nodes: Mapping[NodeName, Gave] = field(default_factory=dict)


def supplies_after(snapshot: Snapshot, before: Supplies) -> Supplies:
    """Return what is known after a look. Before the first look at a node, it gave all of its cores."""
    seconds = max(0.0, snapshot.now - before.at)
    kept = math.exp(-seconds / max(REMEMBERED_S, snapshot.now / 2))
    nodes: dict[NodeName, Gave] = {}
    for node in snapshot.nodes:
        part, gave = _part(node), before.nodes.get(node.name, Gave(1.0, 1.0))
        least, most = (part + kept * (once - part) for once in (gave.least, gave.most))
        nodes[node.name] = Gave(min(part, least), max(part, most))
    return Supplies(snapshot.now, nodes)


def drawn_supplies(nodes: Sequence[Node], supplies: Supplies, draws: int) -> list[Sequence[float]]:
    """Return the cores that each of ``nodes`` gives in each draw; empty where all always gave the same.

    Others come and go on all nodes at once, as a host's load does on its virtual machines: so ranges are wide enough.
    """
    each = [(node, supplies.nodes.get(node.name, Gave(_part(node), _part(node)))) for node in nodes]
    if all(gave.most - gave.least <= 0 for _, gave in each):
        return [()] * draws
    now = [node.supplied for node in nodes]
    chances, places = uniform("supply changes", draws), uniform("supply", draws)
    return [
        now if chance < STAYS else [node.cpu * (gave.least + place * (gave.most - gave.least)) for node, gave in each]
        for chance, place in zip(chances, places, strict=True)
    ]


def _part(node: Node) -> float:
    return node.supplied / node.cpu if node.cpu > 0 else 1.0
