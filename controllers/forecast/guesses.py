"""What is drawn for a forecast where nobody knows it: how long trials are, and how many cores they can use. Pure.

Both are drawn from the sweep's other trials. One of which only a lower bound is known passes its chance on to those
above it, which comes to the estimate of Kaplan and Meier (redistribution to the right: Efron 1967).
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final
from zlib import crc32

Seen = tuple[float, bool]
"""A value that was seen of a trial, and whether it is exact; otherwise the true one is greater."""

PRIOR_SPREAD: Final = 0.6
"""Spread of the logarithms of lengths before any two are known; it counts as much as half a trial."""
PRIOR_WEIGHT: Final = 0.5
OWN_SPREAD: Final = 0.2
"""Part of the lengths' uncertainty that each trial has for itself; the rest is common to all that are drawn."""
LIKE: Final = 3
"""Trials of about the same length, to either side, that the most cores of a trial are drawn from."""
MORE: Final = 1.05
"""What is drawn is at least so many times what a trial was seen to use."""
UNBOUND: Final = 0.5
"""Chance that trials which always used all that they were given could use a whole node."""
LEAST_CORES: Final = 0.05


@cache
def _normal_scores(draws: int) -> tuple[float, ...]:
    normal = statistics.NormalDist()
    return tuple(normal.inv_cdf((place + 0.5) / draws) for place in range(draws))


def _places(name: str, draws: int) -> list[int]:
    """Return the numbers below ``draws`` (a prime) in an order that follows from ``name``."""
    number = crc32(name.encode())
    step, first = 1 + number % (draws - 1), number // draws
    return [(first + draw * step) % draws for draw in range(draws)]


def uniform(name: str, draws: int) -> list[float]:
    """Return one number between 0 and 1 for each of ``draws`` (a prime), evenly spaced, in an order of the name's own.

    A Latin hypercube without a generator: the same name has the same numbers in each forecast, so that what changes
    from one to the next has changed in the sweep.
    """
    return [(place + 0.5) / draws for place in _places(name, draws)]


def normal(name: str, draws: int) -> list[float]:
    """Return as many normal scores, in an order of the name's own."""
    scores = _normal_scores(draws)
    return [scores[place] for place in _places(name, draws)]


class Lengths:
    """How long the trials of a sweep are, in core seconds of a single core.

    Args:
        totals: Of trials that ended or tell it.
        running: Work done by trials that do not tell theirs.
        draws: How many lengths of each trial will be drawn.
    """

    def __init__(self, totals: Sequence[float], running: Iterable[float], draws: int) -> None:
        self._deck = sorted([*((total, True) for total in totals), *((done, False) for done in running if done > 0)])
        self._values = [value for value, _ in self._deck]
        logs = [math.log(total) for total in totals]
        usual = statistics.fmean(logs)
        spread = PRIOR_WEIGHT * PRIOR_SPREAD**2 + sum((log - usual) ** 2 for log in logs)
        # Of n lengths, the next one's logarithm is 1 + 1 / n times as uncertain as they are spread. Drawing from the n
        # gives 1 - 1 / n of that.
        error = math.sqrt(spread / (PRIOR_WEIGHT + len(logs) - 1) * 2 / len(logs))
        self._own = OWN_SPREAD * error
        common = error * math.sqrt(1 - OWN_SPREAD**2)
        self._common = [math.exp(common * score) for score in normal("length", draws)]
        # Beyond all that was seen, lengths are exponential: the maximum likelihood is all exposure over all ends.
        mean, error = sum(self._values) / len(totals), 1 / math.sqrt(len(totals) + 1)
        self._tail = [mean * math.exp(error * score) for score in normal("tail", draws)]

    def drawn(self, name: str, done: float) -> list[tuple[float, float]]:
        """Return a length that some other trial has, and that length with its uncertainty; for each draw.

        Args:
            name: Of the trial.
            done: Work that it has done already.
        """
        draws = len(self._common)
        found: list[tuple[float, float]] = []
        for draw, (chance, score) in enumerate(zip(uniform(name, draws), normal(f"{name} own", draws), strict=True)):
            seen = self._drawn(done, chance, self._tail[draw])
            total = seen * self._common[draw] * math.exp(self._own * score)
            found.append((seen, max(total, done)))
        return found

    def _drawn(self, above: float, chance: float, tail: float) -> float:
        while True:
            first = bisect_right(self._values, above)
            left = len(self._values) - first
            if not left:
                return above - tail * math.log(1 - chance)
            place = chance * left
            above, exact = self._deck[first + int(place)]
            if exact:
                return above
            chance = place - int(place)


@dataclass(frozen=True, slots=True)
class Like:
    """A trial that others are taken to be like: its length, and the most cores it can use (a bound, if not exact)."""

    total: float
    most: Seen


class Mosts:
    """The most cores that the trials of a sweep can use.

    Args:
        known: Trials of which length and use are known.
        largest: Cores of the largest node.
        draws: How many numbers of each trial will be drawn.
    """

    def __init__(self, known: Iterable[Like], largest: float, draws: int) -> None:
        self._known = sorted(known, key=lambda one: one.total)
        self._totals = [one.total for one in self._known]
        self._largest = largest
        # The same for all trials in a draw: the trials of a sweep are mostly of one kind.
        self._beyond = [max(0.0, (chance - UNBOUND) / (1 - UNBOUND)) for chance in uniform("beyond", draws)]

    def drawn(self, name: str, totals: Sequence[float], used: float) -> list[float]:
        """Return the most cores for each draw.

        Args:
            name: Of the trial.
            totals: Its length in each draw.
            used: The most that it was seen to use.
        """
        chances = uniform(f"{name} most", len(totals))
        near: list[Seen] = []
        total, found = math.nan, []
        for draw, chance in enumerate(chances):
            if totals[draw] != total:
                total = totals[draw]
                near = self._near(total, used)
            found.append(self._drawn(near, used, chance, self._beyond[draw]))
        return found

    def _near(self, total: float, used: float) -> list[Seen]:
        at = bisect_left(self._totals, total)
        if used <= LEAST_CORES and at < len(self._known) and self._totals[at] == total and self._known[at].most[1]:
            return [self._known[at].most]  # a length that was drawn brings the cores of the trial that it was seen of
        near = self._known[max(0, at - LIKE) : at + LIKE]
        return [one.most for one in near]

    def _drawn(self, near: Sequence[Seen], above: float, chance: float, beyond: float) -> float:
        while True:
            greater = [one for one in near if one[0] > max(MORE * above, LEAST_CORES)]
            if not greater:
                break
            place = chance * len(greater)
            above, exact = greater[int(place)]
            if exact:
                return above
            chance = place - int(place)
        if above <= LEAST_CORES or above >= self._largest:
            return self._largest
        return float(above * (self._largest / above) ** (1 - beyond))
