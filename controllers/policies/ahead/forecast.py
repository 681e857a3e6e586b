"""What the trials of a node come to: a fluid model in which the shortest go first. Pure."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import truediv
from typing import Final

from controllers.policies.kit.allocation import allocate

Load = tuple[float, float]
"""Work left (as on a single core, in seconds) and the most cores that the trial can use."""

LINEAR: Final = 0.98
"""From this power on, speed counts as growing like cores."""
NOTHING: Final = 1e-9
"""Work below which a trial is done: sums of floats are not exact."""
EVEN: Final = 1.0
"""The exponent with which all trials of a node get the same (``allocate``)."""
LAST_WEIGHT: Final = 0.3
"""Weight of a node's last completion beside the mean of all, where the way to share is chosen."""


@dataclass(frozen=True, slots=True)
class NodeForecast:
    """What a node's trials come to, in seconds from now.

    ``completions`` is the sum of their completion times, ``last`` the latest. ``drain`` is what all would take if each
    could use all cores, ``bound`` when the node could be done at the earliest. ``exponent`` says how its cores are best
    shared (``allocate``).
    """

    completions: float = 0.0
    last: float = 0.0
    drain: float = 0.0
    bound: float = 0.0
    exponent: float = math.inf


def node_forecast(loads: Iterable[Load], cores: float, power: float) -> NodeForecast:
    """Return the best that ``loads`` can come to on ``cores`` cores, where the speed of a trial is cores ** power.

    Where speed grows more slowly than cores there are several ways to share; the best has the least sum of
    completions and (with a weight for each trial) last completion.
    """
    queue = tuple(sorted(loads))
    return _node_forecast(queue, cores, power) if queue and cores > 0 else NodeForecast()


# Most nodes come to what they came to at the last look, and equal nodes to the same.
@lru_cache(maxsize=2**14)
def _node_forecast(queue: tuple[Load, ...], cores: float, power: float) -> NodeForecast:
    exponents = (math.inf,) if power >= LINEAR else (1 / (1 - power), 4.0, 2.0, 1.0)
    forecasts = [(*_share(queue, cores, power, exponent), exponent) for exponent in exponents]
    completions, last, exponent = min(forecasts, key=lambda of: of[0] + LAST_WEIGHT * len(queue) * of[1])
    drain = sum([work for work, _ in queue]) / math.pow(cores, power)
    return NodeForecast(completions, last, drain, _bound(queue, cores, cores, power), exponent)


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
    # Where speed grows more slowly than cores, all at once waste the least; where it grows faster, one by one.
    share = capacity / len(loads) if power < 1 else largest
    together = sum([work * math.pow(min(most, share), 1 - power) for work, most in loads]) / capacity
    if expected and (left := sum([work for work, _ in loads])) > 0:
        together *= 1 + expected / left
    return max(together, *[work / math.pow(min(most, largest), power) for work, most in loads])


def share_evenly(loads: Iterable[Load], cores: float, power: float) -> tuple[float, float]:
    """Return the sum of the completion times of ``loads``, and the last, where all get the same part of the cores."""
    queue = sorted(loads)
    return _share(queue, cores, power, EVEN) if queue and cores > 0 else (0.0, 0.0)


def _share(queue: Sequence[Load], cores: float, power: float, exponent: float) -> tuple[float, float]:
    """Return the sum of the completion times, and the last of them."""
    works, mosts = [work for work, _ in queue], [min(most, cores) for _, most in queue]
    least = min(mosts)
    now = completions = 0.0
    while works:
        largest, speeds = _speeds((cores,) * len(works), cores, power, exponent)
        if largest > least:  # somebody cannot use the share that it would get beside those that can use any
            _, speeds = _speeds(tuple(mosts), cores, power, exponent)
        step = min(map(truediv, works, speeds))
        now += step
        # What gets nothing stands last, and stays as it is.
        works[: len(speeds)] = [work - speed * step for work, speed in zip(works, speeds, strict=False)]
        over = [k for k, work in enumerate(works) if work <= NOTHING]
        completions += now * len(over)
        for k in reversed(over):
            del works[k], mosts[k]
    return completions, now


# Trials stand in line again and again beside the same others.
@lru_cache(maxsize=2**14)
def _speeds(mosts: tuple[float, ...], cores: float, power: float, exponent: float) -> tuple[float, Sequence[float]]:
    """Return the largest share of a node's trials, and the speeds of those that have one, who stand first."""
    shares = allocate(mosts, cores, exponent)
    return max(shares), [math.pow(share, power) for share in shares if share > 0]
