"""What the work on all nodes costs, kept up while places and moves are chosen: a change costs little on any cluster."""

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping
from heapq import heappop, heappush, merge
from itertools import islice
from typing import Final

from controllers.core.model import NodeName
from controllers.policies.ahead.forecast import NodeForecast

BITS: Final = 64
"""Sums count units of 2 ** -64 of a second (or of its fourth power): as whole numbers they depend on no order."""

Key = tuple[float, int, float, NodeName]
"""A node's drain, the number of its trials, minus its cores, and its name: the least key has room soonest."""


class Tally:
    """The forecast of each node, and what all of them cost together, in trial seconds.

    A state of all nodes costs the sum of all completions, and an end that is late or uneven. The end is half the latest
    of the nodes' bounds, half their 4-norm: a node that is not the last should be done early too, since its cores are
    what the last one's trials can move to.

    Nodes are alike if they have the same ``size_of`` and the same devices. ``lines`` holds those of each kind in the
    order in which they will have room, ``keys`` by what they stand in it, and ``changed`` which nodes changed since the
    beginning, one after another.

    Args:
        nodes: The forecast of each node, and the number of its trials.
        cores: Those of each node, above 0.
        trials: How many there are in all.
        end_weight: The weight of the end beside the mean completion time.
        models: What devices each node has, if any.
    """

    def __init__(
        self,
        nodes: Mapping[NodeName, tuple[NodeForecast, int]],
        cores: Mapping[NodeName, float],
        trials: int,
        end_weight: float,
        models: Mapping[NodeName, str] | None = None,
    ) -> None:
        self.forecasts = {node: forecast for node, (forecast, _) in nodes.items()}
        self.keys: dict[NodeName, Key] = {
            node: (forecast.drain, count, -cores[node], node) for node, (forecast, count) in nodes.items()
        }
        self.sizes = {node: (size_of(cores[node]), (models or {}).get(node, "")) for node in nodes}
        each = {size: [node for node in nodes if self.sizes[node] == size] for size in sorted(set(self.sizes.values()))}
        self.lines = {size: sorted(self.keys[node] for node in alike) for size, alike in each.items()}
        self._weight = end_weight * trials
        self._completions = sum(_units(forecast.completions) for forecast in self.forecasts.values())
        self._fourths = sum(_fourth(forecast) for forecast in self.forecasts.values())
        self._by_bound = sorted((forecast.bound, node) for node, forecast in self.forecasts.items())
        self._by_last = {
            size: sorted((self.forecasts[node].last, -cores[node], node) for node in alike)
            for size, alike in each.items()
        }
        self.changed: list[NodeName] = []

    def cost(self, changed: Mapping[NodeName, NodeForecast]) -> float:
        """Return what all nodes cost where those in ``changed`` come to something else."""
        if not self.forecasts:
            return 0.0
        completions, fourths = self._completions, self._fourths
        for node, after in changed.items():
            before = self.forecasts[node]
            completions += _units(after.completions) - _units(before.completions)
            fourths += _fourth(after) - _fourth(before)
        others = next((bound for bound, node in reversed(self._by_bound) if node not in changed), 0.0)
        latest = max(others, *(after.bound for after in changed.values())) if changed else others
        spread = math.pow(fourths / (len(self.forecasts) << BITS), 1 / 4)
        return completions / (1 << BITS) + self._weight * (spread + latest) / 2

    def change(self, node: NodeName, forecast: NodeForecast, trials: int) -> None:
        """Count that ``node`` now has so many ``trials`` and comes to ``forecast``."""
        before, key, size = self.forecasts[node], self.keys[node], self.sizes[node]
        self._completions += _units(forecast.completions) - _units(before.completions)
        self._fourths += _fourth(forecast) - _fourth(before)
        smaller, line, by_last = key[2], self.lines[size], self._by_last[size]
        del line[bisect_left(line, key)]
        del self._by_bound[bisect_left(self._by_bound, (before.bound, node))]
        del by_last[bisect_left(by_last, (before.last, smaller, node))]
        self.forecasts[node], self.keys[node] = forecast, (forecast.drain, trials, smaller, node)
        insort(line, self.keys[node])
        insort(self._by_bound, (forecast.bound, node))
        insort(by_last, (forecast.last, smaller, node))
        self.changed.append(node)

    def first_done(self, count: int) -> list[NodeName]:
        """Return the ``count`` nodes of each size whose last trials are done first."""
        return [node for order in self._by_last.values() for *_, node in order[:count]]

    def last_done(self, count: int) -> list[NodeName]:
        """Return the ``count`` nodes whose last trials are done last, the very last first."""
        latest = merge(*(order[::-1][:count] for order in self._by_last.values()), reverse=True)
        return [node for _, _, node in islice(latest, count)]


class NodeLine:
    """The nodes that suit some of the trials that are to be placed, those of each size first that have room soonest.

    Where a trial may use many cores, one of the large nodes can be best though small ones stand idle, and the other way
    round where large ones are crowded.

    While trials are placed, a node that does not suit them never will, so nobody asks for it again.

    Args:
        tally: What each node comes to; it may change as trials are placed.
        suits: Whether a node takes such a trial.
    """

    def __init__(self, tally: Tally, suits: Callable[[NodeName], bool]) -> None:
        self._tally = tally
        self._suits = suits
        self._heaps = {size: list(line) for size, line in tally.lines.items()}  # whatever is sorted is a heap
        self._seen = len(tally.changed)

    def first(self, count: int) -> list[NodeName]:
        """Return the first ``count`` nodes of each size that suit."""
        tally = self._tally
        for node in dict.fromkeys(tally.changed[self._seen :]):
            heappush(self._heaps[tally.sizes[node]], tally.keys[node])
        self._seen = len(tally.changed)
        return [node for heap in self._heaps.values() for node in self._first(heap, count)]

    def _first(self, heap: list[Key], count: int) -> list[NodeName]:
        keys: list[Key] = []
        while heap and len(keys) < count:
            key = heappop(heap)
            if keys[-1:] == [key]:
                continue  # The node came back to what it was: it stands here twice, one after the other.
            if key == self._tally.keys[key[-1]] and self._suits(key[-1]):
                keys.append(key)
        for key in keys:
            heappush(heap, key)
        return [node for *_, node in keys]


def size_of(cores: float) -> int:
    """Return the power of two that is nearest to ``cores``: by it, nodes are of one size."""
    return round(math.log2(cores))


def _units(seconds: float) -> int:
    return int(math.ldexp(seconds, BITS))


def _fourth(forecast: NodeForecast) -> int:
    return _units(math.pow(forecast.bound, 4))
