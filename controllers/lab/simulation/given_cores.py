"""What all nodes together give trials as time goes on, where others use them too. Pure; core seconds of speed 1."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

from controllers.worlds.simulated.workload import NodeSpec


@dataclass(frozen=True)
class GivenCores:
    """``most`` cores (or devices) from the beginning on, and others by ``rates``: rising times, and cores from then on.

    Time begins at 0, when nothing has been given.
    """

    most: float
    rates: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, nodes: Sequence[NodeSpec]) -> Self:
        """Return what ``nodes`` give together."""
        times = sorted({max(0.0, at) for node in nodes for at, _ in node.supply})
        rates = tuple((at, sum(node.supplied(at) * node.speed for node in nodes)) for at in times)
        return cls(sum(node.cpu * node.speed for node in nodes), rates)

    @property
    def changes(self) -> Iterable[float]:
        """When it changes."""
        return [at for at, _ in self.rates]

    def until(self, at: float) -> float:
        """Return what was given until then."""
        index = bisect_right(self._times, at) - 1
        return self._given[index] + self._rates[index] * (at - self._times[index])

    def when(self, given: float) -> float:
        """Return when so much has been given."""
        index = bisect_right(self._given, given) - 1
        return self._times[index] + (given - self._given[index]) / self._rates[index]

    def done_at(self, begun: float, volume: float) -> float:
        """Return when ``volume`` more has been given than at ``begun``."""
        return self.when(self.until(begun) + volume) if self.rates else begun + volume / self.most

    @cached_property
    def _times(self) -> list[float]:
        return [0.0, *self.changes]

    @cached_property
    def _rates(self) -> list[float]:
        return [self.most, *(rate for _, rate in self.rates)]

    @cached_property
    def _given(self) -> list[float]:
        given = [0.0]
        for (since, until), rate in zip(pairwise(self._times), self._rates, strict=False):
            given.append(given[-1] + rate * (until - since))
        return given
