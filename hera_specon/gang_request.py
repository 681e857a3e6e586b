"""What a trial of several workers asks of a cluster's nodes."""

import math
from dataclasses import dataclass
from typing import Final

_SLACK: Final = 1e-9


@dataclass(frozen=True, slots=True)
class GangRequest:
    """How many ``workers`` a trial needs at once, each with so many cores and bytes."""

    workers: int
    cpu: float
    memory: float

    def held_by(self, cpu: float, memory: float) -> int:
        """Return how many of the workers an empty node of ``cpu`` cores and ``memory`` bytes holds, at most all."""
        by_cpu = cpu / self.cpu + _SLACK if self.cpu else math.inf
        by_memory = memory / self.memory if self.memory else math.inf
        return int(min(by_cpu, by_memory, self.workers))
