"""Nodes that could come, opened one after another for trials that find no room on those that are there. Pure."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from controllers.core.actions import Place
from controllers.core.model import Node, NodeKind, NodeName, Trial, TrialId
from controllers.policies.kit.capacity import SLACK, Capacity, RequestShape, request_shape

MOST: Final = 200
"""Nodes that are looked ahead at once."""


class NewNodes:
    """Nodes of ``kinds`` that could come: at most those that are coming, and as many more as there can be of each.

    The cheapest kind for each core goes first, then the one that is there the soonest; those with devices come last.
    """

    def __init__(self, kinds: Iterable[NodeKind]) -> None:
        self._line = sorted(kinds, key=_rank)
        self._opened: dict[str, list[NodeName]] = {kind.name: [] for kind in self._line}
        self._trials: dict[TrialId, Trial] = {}
        self._nodes: dict[NodeName, Node] = {}
        self._capacity = Capacity(self._nodes, self._trials, {}, {}, {}, {})
        # To take trials only takes room away: a node that is too full for a trial stays so for others like it.
        self._first: dict[tuple[str, RequestShape], int] = {}
        self._unfit: set[tuple[RequestShape, frozenset[str] | None]] = set()
        self.kinds: dict[NodeName, NodeKind] = {}
        """The kind of each node that was opened."""
        self.places: dict[TrialId, NodeName] = {}
        """The node of each trial that was taken."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that were opened, empty."""
        return tuple(self._nodes.values())

    def take(self, trial: Trial) -> bool:
        """Find a place for a trial of one worker, on a node that is open already if it can; return whether it has."""
        self._trials[trial.id] = shape = replace(trial, may_use=None, nodes=())
        alike = request_shape(shape), trial.may_ask
        if alike in self._unfit:
            return False
        for kind in self._line:
            if kind.holds(trial) and (node := self._on(kind, shape)) is not None:
                self._capacity.apply(Place(trial.id, (node,)))
                self.places[trial.id] = node
                return True
        self._unfit.add(alike)
        return False

    def _on(self, kind: NodeKind, shape: Trial) -> NodeName | None:
        """Return the first node of a kind with room for a trial, None where there can be none."""
        opened, of = self._opened[kind.name], (kind.name, request_shape(shape))
        first = self._first.get(of, 0)
        while first < len(opened) and not self._capacity.holds(shape, opened[first], 1):
            first += 1
        self._first[of] = first
        return opened[first] if first < len(opened) else self._open(kind, shape)

    def open_to(self, trial: Trial) -> frozenset[NodeName]:
        """Return the opened nodes that a trial may go to."""
        return frozenset(name for name, kind in self.kinds.items() if kind.holds(trial))

    def _open(self, kind: NodeKind, shape: Trial) -> NodeName | None:
        opened = self._opened[kind.name]
        if len(opened) >= kind.coming + kind.more or len(self._nodes) >= MOST:
            return None
        name = NodeName(f"a new {kind.name} ({len(opened) + 1})")
        self._nodes[name] = Node(
            name, kind.cpu, kind.memory, devices=kind.devices, only_for=kind.only_for, zone=kind.zone, kind=kind.name
        )
        if not self._capacity.holds(shape, name, 1):
            del self._nodes[name]
            return None
        opened.append(name)
        self.kinds[name] = kind
        return name


def _rank(kind: NodeKind) -> tuple[bool, float, float, str]:
    each = math.inf if kind.price is None else kind.price / max(kind.cpu, SLACK)
    return bool(kind.devices), each, kind.boots_s, kind.name
