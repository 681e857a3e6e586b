"""What the trials of a node come to: a fluid model in which the shortest go first. Pure."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

Load = tuple[float, float]
"""Work left (as on a single core, in seconds) and the most cores that the trial can use."""

LINEAR: Final = 0.98
"""From this power on, speed counts as growing like cores."""
NOTHING: Final = 1e-9
"""Work below which a trial is done: sums of floats are not exact."""
LAST_WEIGHT: Final = 0.3
"""Weight of a node's last completion beside the mean of all, where the way to share is chosen."""


@dataclass(frozen=True, slots=True)
class NodeForecast:
    """What a node's trials come to, in seconds from now.

    ``completions`` is the sum of their completion times, ``last`` the latest. ``bound`` is when the node could be done
    at the earliest. ``exponent`` says how its cores are best shared (``allocated``).
    """

    completions: float = 0.0
    last: float = 0.0
    bound: float = 0.0
    exponent: float = math.inf


def allocated(mosts: Sequence[float], cores: float, exponent: float) -> list[float]:
    """Return the cores of each trial of a node, the one with the least work left first.

    With an infinite ``exponent`` e the first gets all it can use, and the rest goes to the next: shortest remaining
    first, the best mean where speed grows like cores (Schrage 1968). With a finite one the k-th of n gets the part
    ((n - k + 1) / n) ** e - ((n - k) / n) ** e, as far as it can use that; what is left over goes by the line again.
    e = 1 / (1 - p) is the best for the mean where speed grows as cores ** p (heSRPT: Berg, Vesilo and Harchol-Balter
    2020), and e = 1 gives all the same, which wastes least.
    """
    shares = [0.0] * len(mosts)
    left = cores
    if exponent < math.inf:
        n = len(mosts)
        for k, most in enumerate(mosts):
            shares[k] = min((((n - k) / n) ** exponent - ((n - k - 1) / n) ** exponent) * cores, most)
            left -= shares[k]
    for k, most in enumerate(mosts):
        more = min(most - shares[k], max(0.0, left))
        shares[k] += more
        left -= more
    return shares


def node_forecast(loads: Iterable[Load], cores: float, power: float) -> NodeForecast:
    """Return the best that ``loads`` can come to on ``cores`` cores, where the speed of a trial is cores ** power.

    Where speed grows more slowly than cores there are several ways to share; the best has the least sum of
    completions and (with a weight for each trial) last completion.
    """
    queue = sorted(loads)
    if not queue or cores <= 0:
        return NodeForecast()
    exponents = (math.inf,) if power >= LINEAR else (1 / (1 - power), 4.0, 2.0, 1.0)
    found = [_shared(queue, cores, power, exponent) for exponent in exponents]
    return min(found, key=lambda one: one.completions + LAST_WEIGHT * len(queue) * one.last)


def cost_of(forecasts: Iterable[NodeForecast], trials: int, end_weight: float) -> float:
    """Return what a state of all nodes costs, in trial seconds: all completions, and an end that is late or uneven.

    The end is half the latest of the nodes' bounds, half their 4-norm: a node that is not the last should be done early
    too, since its cores are what the last one's trials can move to.
    """
    nodes = list(forecasts)
    if not nodes:
        return 0.0
    spread = math.pow(sum(math.pow(node.bound, 4) for node in nodes) / len(nodes), 1 / 4)
    latest = max(node.bound for node in nodes)
    return sum(node.completions for node in nodes) + end_weight * trials * (spread + latest) / 2


def earliest_end(loads: Iterable[Load], cores: Collection[float], power: float, expected: float = 0.0) -> float:
    """Return the seconds until all can be done at the earliest, were every trial free to go anywhere at any time.

    ``expected`` is the work of trials that are still to come.
    """
    every, capacity = list(loads), sum(cores)
    if not every or capacity <= 0:
        return 0.0
    return _bound(every, capacity, max(cores), power, expected)


def _bound(loads: Sequence[Load], capacity: float, largest: float, power: float, expected: float = 0.0) -> float:
    """Return the greater of what all need together and what the longest needs alone."""
    evenly = capacity / len(loads)
    together = sum(work * math.pow(min(most, evenly), 1 - power) for work, most in loads) / capacity
    left = sum(work for work, _ in loads)
    together *= 1 + expected / left if left > 0 else 1.0
    return max(together, *(work / math.pow(min(most, largest), power) for work, most in loads))


def _shared(queue: Sequence[Load], cores: float, power: float, exponent: float) -> NodeForecast:
    left = [[work, min(most, cores)] for work, most in queue]
    now = completions = 0.0
    while left:
        shares = allocated([most for _, most in left], cores, exponent)
        speeds = [math.pow(share, power) for share in shares]
        step = min(one[0] / speed for one, speed in zip(left, speeds, strict=True) if speed > 0)
        now += step
        for one, speed in zip(left, speeds, strict=True):
            one[0] -= speed * step
        going_on = [one for one in left if one[0] > NOTHING]
        completions += now * (len(left) - len(going_on))
        left = going_on
    return NodeForecast(completions, now, _bound(queue, cores, cores, power), exponent)
