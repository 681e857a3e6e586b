"""Which kinds of nodes can come to the cluster, by the nodes that came and by what an owner says."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from controllers.core.model import NodeKind
from controllers.core.node_kinds import MOST_KINDS
from controllers.worlds.argo.meaning.room import NodeRequests
from controllers.worlds.argo.reading.demands import Demands
from controllers.worlds.argo.reading.node_kinds import NOTHING_GIVEN, GivenKind, GivenKinds
from controllers.worlds.argo.reading.nodes import NodeRecord
from controllers.worlds.argo.reading.pods import NO_RESOURCES

UNKNOWN: Final = NodeKind("", math.inf, more=1.0)
"""Whether an autoscaler looks at the cluster is written nowhere: a trial at a time may try."""
COMES_WITHIN_S: Final = 900.0
"""A node that is older than this and not ready is broken, and not coming."""


class KindsSeen:
    """The kinds that owners gave, and a node of each other kind that was there since this process began."""

    def __init__(self, given: GivenKinds = NOTHING_GIVEN) -> None:
        self.given: Mapping[str, GivenKind] = {kind.name: kind for kind in given.kinds}
        self.seen: Mapping[str, NodeRecord] = {}

    def look(self, nodes: Iterable[NodeRecord]) -> None:
        """Take in the nodes that are there now; of a kind, the newest that is ready tells most."""
        now: dict[str, NodeRecord] = {}
        for node in sorted(nodes, key=lambda node: (node.fit, node.created_at, node.name)):
            if node.kind.name and node.kind.name not in self.given:
                now[node.kind.name] = node
        kept = {**{name: node for name, node in self.seen.items() if name not in now}, **now}
        self.seen = dict(list(kept.items())[-MOST_KINDS:])

    def for_pods(self, demands: Demands) -> frozenset[str] | None:
        """Return the kinds that pods with these ``demands`` may go to; None where that is every one."""
        kinds: Mapping[str, GivenKind | NodeRecord] = {**self.seen, **self.given}
        allowed = frozenset(name for name, kind in kinds.items() if kind.allows(demands))
        return None if len(allowed) == len(kinds) else allowed


def kinds_that_come(requests: NodeRequests, seen: KindsSeen, began: float, now: float) -> tuple[NodeKind, ...]:
    """Return the kinds of nodes that can come.

    Nodes come by themselves if an owner says so, if Karpenter makes them, or if one came since the sweep began. Of a
    kind that nobody gave, as many more can come at a time as there are, so that a wrong belief costs little.

    Args:
        requests: The nodes, and what is requested of them.
        seen: The kinds.
        began: When the sweep began, in Unix seconds.
        now: Unix seconds.
    """
    there, coming, came = Counter[str](), Counter[str](), set[str]()
    for node in requests.nodes.values():
        name = node.kind.name
        there[name] += 1
        coming[name] += node.unready_since is not None and now - node.created_at < COMES_WITHIN_S
        if name and (node.karpenters or node.created_at > began):
            came.add(name)
    kinds = [
        replace(_given(kind), more=float(max(0, kind.most - there[name])), coming=coming[name])
        for name, kind in seen.given.items()
    ]
    kinds += [
        replace(_like(seen.seen[name], requests), more=float(max(1, there[name])), coming=coming[name])
        for name in sorted(came - seen.given.keys())
        if name in seen.seen
    ]
    return (*kinds, UNKNOWN)


def _given(kind: GivenKind) -> NodeKind:
    return NodeKind(
        kind.name,
        kind.cpu,
        kind.memory,
        kind.devices,
        kind.only_for,
        boots_s=kind.boots_s,
        price=kind.price,
        spot=kind.spot,
    )


def _like(node: NodeRecord, requests: NodeRequests) -> NodeKind:
    """Return the kind of a node: what it has, less what runs on every node."""
    daemons = requests.daemons.get(node.name, NO_RESOURCES)
    return NodeKind(
        node.kind.name,
        max(0.0, node.cpu - daemons.cpu),
        max(0.0, node.memory - daemons.memory),
        (node.devices - daemons.devices).positive(),
        node.only_for,
        price=node.kind.price,
        spot=node.kind.spot,
    )
