"""Moves that make room: a small trial goes elsewhere, so that a wide one which fits nowhere can start. Pure.

Where trials ask for unlike room and use all of it, cores stand idle though trials wait: a few on each node, and enough
on none. Every trial that fits starts, so wide trials wait until the small ones are through, and the sweep ends with the
wide ones alone. One move of a small trial to cores that stand idle elsewhere gives a wide one its place at once.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from controllers.core.model import NodeName, Trial, TrialId
from controllers.policies.kit.capacity import Capacity, RequestShape, request_shape

Ends = Mapping[NodeName, Sequence[tuple[float, Trial]]]
"""The trials of each node with the seconds until each can have ended at the earliest, the first to end first."""


class Exchange(NamedTuple):
    """A ``trial`` that leaves ``source`` for ``target``, so that another one has room there."""

    trial: Trial
    source: NodeName
    target: NodeName


def seconds_until_room(trial: Trial, ends: Ends, capacity: Capacity) -> float:
    """Return the seconds until a trial that waits has room on some node at the earliest, as those that run end.

    Infinity where it never has, since no node is large enough. ``capacity`` is as before when this returns.
    """
    soonest = math.inf
    for node, line in ends.items():
        gone: list[Trial] = []
        for seconds, other in line:
            if seconds >= soonest:
                break
            capacity.release(other, (node,), other.nodes.count(node))
            gone.append(other)
            if capacity.fits(trial, node):
                soonest = seconds
                break
        for other in gone:
            capacity.release(other, (node,), -other.nodes.count(node))
    return soonest


def exchanges(trial: Trial, ends: Ends, capacity: Capacity, movable: AbstractSet[TrialId]) -> Iterator[Exchange]:
    """Yield each move of one ``movable`` trial that makes room for ``trial``, to the node that it fills best.

    ``capacity`` is as before whenever this yields.
    """
    wanted, targets = request_shape(trial), dict[RequestShape, list[NodeName]]()
    for source, line in ends.items():
        for _, other in line:
            if other.id not in movable or other.gang or request_shape(other) == wanted:
                continue
            capacity.release(other, (source,))
            makes_room = capacity.fits(trial, source)
            capacity.release(other, (source,), -1)
            if not makes_room:
                continue
            shape = request_shape(other)
            if shape not in targets:
                newcomer = replace(other, nodes=())  # a trial itself has room where it is
                roomy = [node for node in ends if capacity.fits(newcomer, node)]
                targets[shape] = sorted(roomy, key=lambda node: (_unrequested(capacity, node), node))
            target = next((node for node in targets[shape] if node != source), None)
            if target is not None:
                yield Exchange(other, source, target)


def _unrequested(capacity: Capacity, node: NodeName) -> float:
    return capacity.nodes[node].cpu - capacity.taken(node)[0]
