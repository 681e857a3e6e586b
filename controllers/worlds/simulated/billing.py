"""What nodes cost, and which trial had what part of it. Prices are per hour, in whatever currency they were given."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from controllers.core.model import TrialId

_HOUR_S = 3600.0


@dataclass(slots=True)
class NodeMeter:
    """Counts what one node costs, from ``since`` seconds on, when it was asked for, until it is gone.

    ``parts`` are the parts of the node that trials hold now, ``held_s`` the node seconds that they held, both by trial:
    half a node for ten seconds are five. Only a node with a ``price`` counts these.
    """

    name: str
    group: str
    price: float | None
    since: float
    until: float | None = None
    parts: dict[TrialId, float] = field(default_factory=dict)
    held_s: dict[TrialId, float] = field(default_factory=dict)
    _counted: float = 0.0

    def count(self, now: float, parts: Mapping[TrialId, float]) -> None:
        """Count what trials have held until ``now``; from then on they hold ``parts``, scaled down to one node."""
        if self.until is not None:
            return
        for trial, part in self.parts.items():
            self.held_s[trial] = self.held_s.get(trial, 0.0) + part * (now - self._counted)
        whole = max(1.0, math.fsum(parts.values()))
        self.parts, self._counted = {trial: part / whole for trial, part in parts.items()}, now

    def end(self, now: float) -> None:
        """Count no more: the node is gone, or has stopped before."""
        self.count(now, {})
        self.until = now if self.until is None else self.until

    def seconds(self, now: float) -> float:
        """Return for how long it has been paid by ``now``."""
        return max(0.0, (now if self.until is None else self.until) - self.since)

    def cost(self, now: float) -> float:
        """Return what it has cost by ``now``; nothing where its price is not known."""
        return self.seconds(now) * (self.price or 0.0) / _HOUR_S


@dataclass(frozen=True, slots=True)
class NodeBill:
    """What the nodes of a sweep came to.

    ``cost`` and ``trials``, the parts of it by trial, are None and empty where no node has a price. Each trial pays
    for what it requested of a node while it held that: the larger of its parts of the node's cores, memory and devices.
    What nobody held is in ``cost`` alone.
    """

    node_s: float = 0.0
    cost: float | None = None
    trials: Mapping[TrialId, float] = field(default_factory=dict)

    @classmethod
    def of(cls, meters: Iterable[NodeMeter], now: float) -> Self:
        """Return the bill of the nodes that were ever there, those that are there still until ``now``."""
        meters = list(meters)
        node_s = math.fsum(meter.seconds(now) for meter in meters)
        priced = [meter for meter in meters if meter.price is not None]
        if not priced:
            return cls(node_s, None)
        trials: dict[TrialId, list[float]] = {}
        for meter in priced:
            for trial, held_s in meter.held_s.items():
                trials.setdefault(trial, []).append(held_s * (meter.price or 0.0) / _HOUR_S)
        cost = math.fsum(meter.cost(now) for meter in priced)
        return cls(node_s, cost, {trial: math.fsum(trials[trial]) for trial in sorted(trials)})
