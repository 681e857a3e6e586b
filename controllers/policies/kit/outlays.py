"""When a sweep would end on so many nodes, and what it would cost. Pure.

The longest trial goes first, each to the place that is free the soonest (list scheduling: Graham, "Bounds on
multiprocessing timing anomalies", 1969). A node is paid from now until an autoscaler takes it away, some time after its
last trial has ended; its boot is paid as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Final

EMPTY_S: Final = 60.0
"""Seconds for which a node stands empty before it is taken away."""
EACH_UP_TO: Final = 16
"""Each number of nodes is looked at up to this; above it, every sixteenth part more is enough."""
_HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Outlay:
    """A sweep on so many new or present ``nodes``: the seconds until its end, and what they cost until then."""

    nodes: int
    seconds: float
    cost: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """The nodes that a sweep can have.

    ``places`` are for so many trials on each; ``here`` of the nodes are there, any further takes ``boots_s`` seconds.
    ``price`` is what an hour of one costs. ``free_places`` are on nodes that are there in any case.
    """

    places: int
    here: int
    boots_s: float
    price: float
    free_places: int = 0


def outlay(lengths: Sequence[float], nodes: int, fleet: Fleet) -> Outlay:
    """Return what comes of trials of these ``lengths`` (seconds that each still takes) on so many ``nodes``."""
    starts = [0.0 if node < fleet.here else fleet.boots_s for node in range(nodes)]
    line = [(start, node) for node, start in enumerate(starts) for _ in range(fleet.places)]
    line += [(0.0, -1)] * fleet.free_places
    if not line:
        return Outlay(nodes, float("inf") if lengths else 0.0, 0.0)
    heapify(line)
    ends = dict.fromkeys(range(nodes), 0.0)
    last = 0.0
    for seconds in sorted(lengths, reverse=True):
        free_at, node = line[0]
        heapreplace(line, (free_at + seconds, node))
        last = max(last, free_at + seconds)
        if node >= 0:
            ends[node] = max(ends[node], free_at + seconds)
    return Outlay(nodes, last, sum(end + EMPTY_S for end in ends.values() if end) * fleet.price / _HOUR_S)


def outlays(lengths: Sequence[float], least: int, most: int, fleet: Fleet) -> list[Outlay]:
    """Return the outlays of ``least`` to ``most`` nodes, of large numbers only some."""
    counts, nodes = [], least
    while nodes < most:
        counts.append(nodes)
        nodes += max(1, nodes // EACH_UP_TO)
    return [outlay(lengths, nodes, fleet) for nodes in (*counts, max(least, most))]


def best(seen: Sequence[Outlay], ends_in_s: float | None, money: float | None) -> Outlay:
    """Return the cheapest that ends in time, or without a time the soonest, of those that the ``money`` pays.

    Where none of these ends in time, it is the soonest of them; where the money pays for none, the cheapest of all.
    """
    paid = [one for one in seen if money is None or one.cost <= money]
    timely = [one for one in paid if ends_in_s is not None and one.seconds <= ends_in_s]
    if timely or not paid:
        return min(timely or seen, key=lambda one: (one.cost, one.nodes))
    return min(paid, key=lambda one: (one.seconds, one.nodes))
