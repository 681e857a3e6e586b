"""How many more attempts the memory holds, by what those before them came to. Pure.

What an attempt holds grows as it trains: until one has come to its most, others of the same template may come to more.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controllers.worlds.local.gauge import MemoryThere

UNTOLD: Final = float(2**30)
"""An attempt counts with so many bytes until the first of its kind has told its own. Where memory is scarce, others
wait for that."""
SETTLED_S: Final = 10.0
"""An attempt that has not grown for so many seconds holds its most, as far as anybody can tell."""
GROWN: Final = 1.1
"""An attempt that holds so many times as much as before counts as one that grows."""
MARGIN: Final = 1.1
"""Attempts of one kind differ by so much, with other hyperparameters."""
KEPT: Final = 0.05
"""Part of the memory that is left to everything else."""


@dataclass(slots=True)
class Holding:
    """What an attempt of a kind holds: ``now`` and at its ``peak``, in bytes, and the readings of the last seconds."""

    kind: str
    asked: float
    started_at: float
    now: float = 0.0
    peak: float = 0.0
    readings: list[tuple[float, float]] = field(default_factory=list)

    def read(self, at: float, held: float) -> None:
        """Take a reading."""
        self.now, self.peak = held, max(self.peak, held)
        self.readings.append((at, held))
        while len(self.readings) > 2 and self.readings[1][0] <= at - SETTLED_S:  # noqa: PLR2004 - a pair spans the time
            self.readings.pop(0)

    @property
    def grown(self) -> float:
        """Bytes by which it grew in the last seconds."""
        return max(0.0, self.now - self.readings[0][1]) if self.readings else 0.0

    def settled(self, at: float) -> bool:
        """Whether it has run for a while and grows no more."""
        return at - self.started_at >= SETTLED_S and self.now <= GROWN * self.readings[0][1]


class MemoryUse:
    """What attempts of each kind came to, and what those that run hold."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}
        self._running: dict[str, Holding] = {}

    def read(self, key: str, holding: Holding, at: float, held: float) -> None:
        """Take a reading of the attempt ``key``; ``holding`` begins its account."""
        account = self._running.setdefault(key, holding)
        account.read(at, held)
        if account.settled(at) or account.peak > self._told.get(account.kind, math.inf):
            self._tell(account)

    def end(self, key: str, *, well: bool) -> float:
        """Take note that an attempt has ended; return the most that it held, 0 where nobody knows."""
        holding = self._running.pop(key, None)
        if holding is None:
            return 0.0
        if well:
            self._tell(holding)
        return holding.peak

    def tell(self, kind: str, peak: float) -> None:
        """Take note of what an attempt of a kind came to at least."""
        self._told[kind] = max(self._told.get(kind, 0.0), peak)

    def has_told(self, kind: str) -> bool:
        """Return whether an attempt of a kind has shown what it needs."""
        return kind in self._told

    def usual(self, kind: str, asked: float) -> float:
        """Return the bytes that one more attempt of a kind will need; ``asked`` is what its author asked for, or 0."""
        known = self._told.get(kind)
        growing = [holding.peak + holding.grown for holding in self._running.values() if holding.kind == kind]
        if known is None:
            return max(asked or UNTOLD, *growing, 1.0)
        return max(asked, MARGIN * known, 1.0)

    def more(self, there: MemoryThere, wanted: Mapping[str, float], beside: Mapping[str, tuple[str, float]]) -> int:
        """Return how many more attempts may start.

        Args:
            there: The memory of the machine.
            wanted: What the author asked for each attempt of the kinds that may come, in bytes.
            beside: Kind of each attempt that was let in, by its key, and what its author asked for it.
        """
        held = {key: self._running[key].now if key in self._running else 0.0 for key in beside}
        grows = sum(max(0.0, self.usual(*beside[key]) - now) for key, now in held.items())
        left = there.available - KEPT * there.total - grows
        need = max((self.usual(kind, asked) for kind, asked in wanted.items()), default=1.0)
        return max(0, math.floor(left / need))

    def _tell(self, holding: Holding) -> None:
        self.tell(holding.kind, holding.peak)
