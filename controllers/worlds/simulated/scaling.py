"""How an autoscaler works, and the market from which it may borrow nodes; as data, in seconds."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from controllers.worlds.simulated.errors import WorkloadError


@dataclass(frozen=True, slots=True)
class AutoscalerTiming:
    """How an autoscaler works; the defaults are Karpenter's manners, in seconds.

    It looks at pods that fit nowhere at multiples of ``scan_s``, and removes a node that was empty for ``idle_s``
    (cluster-autoscaler: 600). What is not ready ``gives_up_s`` after it was asked for is given up. Of a group whose
    provider had no node, it asks for none for ``retry_s``.
    """

    scan_s: float = 10.0
    idle_s: float = 60.0
    gives_up_s: float = 900.0
    retry_s: float = 180.0

    def __post_init__(self) -> None:
        for name in ("scan_s", "idle_s", "gives_up_s", "retry_s"):
            least = 0.0 if name == "idle_s" else 1e-3
            if not least <= getattr(self, name) < math.inf:
                message = f"scaling: {name} must be finite and at least {least:g} s, not {getattr(self, name)}"
                raise WorkloadError(message)


@dataclass(frozen=True, slots=True)
class SpotMarket:
    """How a provider takes back nodes that it lends cheaply; times are seconds.

    It takes a node after ``mean_life_s`` on average (exponentially), None never; and as many as it has too few of at a
    time, where ``available`` holds pairs (from when, nodes that it has). ``notice_s`` before, it says so: the node
    takes no new trials then. Where something on the cluster ``drains`` the node, its trials are told to leave at that
    moment, as an eviction does, and it goes once it is empty. Where nothing does, what is on it at the end is lost. The
    end of a node without any notice is known ``known_after_s`` later.
    """

    notice_s: float = 120.0
    drains: bool = True
    mean_life_s: float | None = None
    available: tuple[tuple[float, float], ...] = ()
    known_after_s: float = 40.0

    def __post_init__(self) -> None:
        for name in ("notice_s", "known_after_s"):
            if not 0 <= getattr(self, name) < math.inf:
                message = f"spot: {name} must be finite and at least 0 s, not {getattr(self, name)}"
                raise WorkloadError(message)
        if self.mean_life_s is not None and not 0 < self.mean_life_s < math.inf:
            message = f"spot: mean_life_s must be finite and above 0, not {self.mean_life_s}"
            raise WorkloadError(message)
        path = ((-math.inf, 0), *self.available)
        if any(not (a[0] < b[0] < math.inf and 0 <= b[1] < math.inf) for a, b in pairwise(path)):
            message = f"spot: available must rise in time, its nodes be at least 0, not {self.available!r}"
            raise WorkloadError(message)

    def has(self, at: float) -> float:
        """Return how many nodes the provider has for us at ``at`` seconds."""
        index = bisect_right(self.available, (at, math.inf))
        return self.available[index - 1][1] if index else math.inf
