"""How evenly the CPU of a cluster was in use: C-Balancer's measure. Pure; seconds and cores."""

import statistics
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from controllers.record.timeline import EventKind, TimelineEvent


def utilisation_variance(timeline: Iterable[TimelineEvent], cores: Mapping[str, float]) -> float:
    """Return the variance over the nodes of the part of their cores in use, on average over the time of the run.

    Args:
        timeline: What happened; the cores that trials used come from its usage events.
        cores: Cores of each node, idle ones included; at least one.
    """
    events = sorted(timeline, key=lambda event: event.at)
    changes = sorted(_changes(events, cores))
    used = dict.fromkeys(cores, 0.0)
    total = 0.0
    for (at, node, change), (until, *_) in pairwise([*changes, (events[-1].at, "", 0.0)] if changes else []):
        used[node] += change
        total += statistics.pvariance(used.values()) * (until - at)
    seconds = events[-1].at - events[0].at if events else 0.0
    return total / seconds if seconds > 0 else 0.0


def _changes(events: Iterable[TimelineEvent], cores: Mapping[str, float]) -> Iterator[tuple[float, str, float]]:
    """Yield when the part of a node's cores in use changes, and by how much."""
    since: dict[str, float] = {}
    for event in events:
        begun = since.setdefault(event.trial, event.at)
        if event.kind is not EventKind.USAGE:
            continue
        since[event.trial] = event.at
        if event.value and event.node is not None and event.node in cores:
            part = event.value / cores[event.node]
            yield begun, event.node, part
            yield event.at, event.node, -part
