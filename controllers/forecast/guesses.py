"""What is drawn for a forecast where nobody knows it: how long trials are, and how many cores they can use. Pure.

All of it is drawn from what was seen of the sweep's other trials.
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Final
from zlib import crc32

Seen = tuple[float, bool]
"""A value that was seen of a trial, and whether it is exact; otherwise the true one is greater."""

PRIOR_SPREAD: Final = 0.6
"""Spread of the logarithms of lengths before any two are known."""
PRIOR_WEIGHT: Final = 0.5
"""The prior spread counts as much as so many trials."""
SPREADS: Final = tuple(0.1 * 1.25**place for place in range(15))
"""Spreads of the logarithms of lengths that are tried where some trials still run."""
USUAL_SPREAD: Final = 0.5
"""The likeliest of ``SPREADS`` before anything is known."""
DOUBT_OF_SPREAD: Final = 0.4
"""Spread of the logarithm of ``USUAL_SPREAD``."""
MEANS: Final = 30
FAR: Final = 4.0
"""Means of the logarithms that lie so many standard errors away are still tried."""
BOUNDS: Final = 20
FAR_SCORE: Final = 5.0
TINY: Final = 1e-9
MOST_LOG: Final = 60.0
LEAST_LENGTH: Final = 1e-9
"""Core seconds: a shorter length makes no sense, and powers of the ratio of two lengths would overflow."""
MOST_LENGTH: Final = 1e15
"""Core seconds: a longer length makes no sense, and powers of the ratio of two lengths would overflow."""
OWN_SPREAD: Final = 0.2
"""Part of the lengths' uncertainty that each trial has for itself; the rest is common to all that are drawn."""
LIKE: Final = 3
"""The most cores of a trial are drawn from so many shorter and so many longer trials, the next in length."""
MORE: Final = 1.05
"""The cores that are drawn are at least so many times what a trial was seen to use."""
UNBOUND: Final = 0.5
"""Chance that trials which always used all that they were given could use a whole node."""
LEAST_CORES: Final = 0.05
WHOLE: Final = 0.95
"""A trial that ended after this part of its steps has made all of them: the last few are seldom seen."""


_NORMAL: Final = statistics.NormalDist()


@cache
def _normal_scores(draws: int) -> tuple[float, ...]:
    return tuple(_NORMAL.inv_cdf((place + 0.5) / draws) for place in range(draws))


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


class Deck:
    """Values seen of trials, to draw from.

    A bound passes its chance on to what is above it, which comes to the estimate of Kaplan and Meier (redistribution
    to the right: Efron 1967).
    """

    def __init__(self, seen: Iterable[Seen]) -> None:
        self._seen = sorted(seen)
        self._values = [value for value, _ in self._seen]

    def drawn(self, above: float, chance: float, *, open_ended: bool = False) -> tuple[float, float | None]:
        """Return a value above ``above``, and None; or the greatest that is known and the chance left beyond it.

        With ``open_ended`` there is one chance more, that of a value greater than all.
        """
        while True:
            first = bisect_right(self._values, above)
            left = len(self._seen) - first
            if not left:
                return above, chance
            place = chance * (left + open_ended)
            number = int(place)
            if number == left:
                return self._values[-1], place - number
            above, exact = self._seen[first + number]
            if exact:
                return above, None
            chance = place - number


class LengthGuesses:
    """How long trials are that have not begun, by those of known length.

    Args:
        totals: Of the trials of known length.
        draws: How many lengths of each trial will be drawn.
    """

    def __init__(self, totals: Sequence[float], draws: int) -> None:
        sane = [min(max(total, LEAST_LENGTH), MOST_LENGTH) for total in totals]
        self._deck = Deck((total, True) for total in sane)
        logs = sorted(math.log(total) for total in sane)
        usual = statistics.fmean(logs)
        spread = PRIOR_WEIGHT * PRIOR_SPREAD**2 + sum((log - usual) ** 2 for log in logs)
        # Of n lengths, the next one's logarithm is 1 + 1 / n times as uncertain as they are spread. Drawing from the n
        # gives 1 - 1 / n of that.
        error = math.sqrt(spread / (PRIOR_WEIGHT + len(logs) - 1) * 2 / len(logs))
        self._own = OWN_SPREAD * error
        common = error * math.sqrt(1 - OWN_SPREAD**2)
        self._common = [math.exp(common * score) for score in normal("length", draws)]
        # Beyond all that were seen, the logarithm grows by what the greatest of them are apart (Hill 1975).
        greatest = logs[-max(2, math.isqrt(len(logs))) :]
        self._apart = statistics.fmean(log - greatest[0] for log in greatest)

    def drawn(self, name: str) -> list[tuple[float, float]]:
        """Return a length that some other trial has, and that length with its uncertainty; for each draw."""
        draws = len(self._common)
        lengths: list[tuple[float, float]] = []
        for draw, (chance, score) in enumerate(zip(uniform(name, draws), normal(f"{name} own", draws), strict=True)):
            seen, beyond = self._deck.drawn(0.0, chance, open_ended=True)
            if beyond is not None:
                seen *= math.pow(1 - beyond, -self._apart)
            lengths.append((seen, seen * self._common[draw] * math.exp(self._own * score)))
        return lengths


class LengthsBeyond:
    """How long trials are that run and do not tell it, by what they have done and by the trials of known length.

    Lengths are taken for lognormal. Each draw has a mean and a spread of their logarithms, as likely as the lengths
    make these, in which a trial that still runs counts by the chance to be longer than what it has done.

    Args:
        totals: Of the trials of known length.
        running: What each of the others has done; greater than 0.
        draws: How many lengths of each trial will be drawn.
    """

    def __init__(self, totals: Sequence[float], running: Iterable[float], draws: int) -> None:
        logs, bounds = [math.log(total) for total in totals], _thin([math.log(done) for done in running])
        usual, n = statistics.fmean(logs), len(logs)
        squares = sum((log - usual) ** 2 for log in logs)
        laws: list[tuple[float, float]] = []
        likely: list[float] = []
        for spread in SPREADS:
            reach = FAR * spread / math.sqrt(n)
            low, high = usual - reach, max([usual + reach, *(bound + 2 * spread for bound, _ in bounds)])
            prior = math.log(high - low) - (math.log(spread / USUAL_SPREAD) / DOUBT_OF_SPREAD) ** 2 / 2
            for place in range(MEANS):
                mean = low + (high - low) * (place + 0.5) / MEANS
                known = n * math.log(spread) + (squares + n * (usual - mean) ** 2) / (2 * spread**2)
                beyond = sum([times * _log_beyond((bound - mean) / spread) for bound, times in bounds])
                laws.append((mean, spread))
                likely.append(prior - known + beyond)
        most = max(likely)
        cumulated = list(accumulate(math.exp(value - most) for value in likely))
        self._laws = [
            laws[min(bisect_left(cumulated, chance * cumulated[-1]), len(laws) - 1)]
            for chance in uniform("length", draws)
        ]

    def drawn(self, name: str, done: float) -> list[float]:
        """Return the length of a trial that has done ``done``, for each draw."""
        log, lengths = math.log(done), []
        for (mean, spread), chance in zip(self._laws, uniform(name, len(self._laws)), strict=True):
            score = (log - mean) / spread
            below = _NORMAL.cdf(score)
            at = below + (1 - below) * chance
            score = _NORMAL.inv_cdf(at) if at < 1 - TINY else score - math.log(1 - chance) / max(1.0, score)
            lengths.append(max(done, math.exp(min(mean + spread * score, MOST_LOG))))
        return lengths


def _thin(bounds: Sequence[float]) -> list[tuple[float, float]]:
    """Return at most ``BOUNDS`` of ``bounds`` that stand for all, and how many each stands for."""
    ordered, kept = sorted(bounds), min(len(bounds), BOUNDS)
    return [(ordered[int((place + 0.5) * len(ordered) / kept)], len(ordered) / kept) for place in range(kept)]


def _log_beyond(score: float) -> float:
    """Return the logarithm of the chance that a normal score is greater."""
    if score < FAR_SCORE:
        return math.log(math.erfc(score / math.sqrt(2)) / 2)
    return -(score**2) / 2 - math.log(score * math.sqrt(2 * math.pi))


class Stops:
    """Which part of the steps that they told trials make in all: early stopping ends some of them sooner.

    Args:
        ended: The part of each trial that ended.
        running: The part that each other trial has made so far.
    """

    def __init__(self, ended: Sequence[float], running: Sequence[float]) -> None:
        whole = [1.0 if part >= WHOLE else part for part in ended]
        self.early = any(part < 1.0 for part in whole)
        """Whether any ended early."""
        self._deck = Deck([*((part, True) for part in whole), *((part, False) for part in running)])

    def left(self, name: str, made: float, draws: int) -> list[float]:
        """Return the part of what is left of a trial that it will make, which has ``made`` that part so far."""
        if not self.early or made >= 1.0:
            return [1.0] * draws
        drawn = (self._deck.drawn(made, chance) for chance in uniform(f"{name} stop", draws))
        return [1.0 if beyond is not None else (part - made) / (1.0 - made) for part, beyond in drawn]


@dataclass(frozen=True, slots=True)
class Like:
    """A trial that others are taken to be like: its length, and the most cores it can use (a bound, if not exact)."""

    total: float
    most: Seen


class Mosts:
    """The most cores that the trials of a sweep can use.

    Args:
        known: Trials whose length and use are known.
        largest: Cores of the largest node.
        draws: How many numbers of each trial will be drawn.
    """

    def __init__(self, known: Iterable[Like], largest: float, draws: int) -> None:
        self._known = sorted(known, key=lambda like: like.total)
        self._totals = [like.total for like in self._known]
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
        mosts: list[float] = []
        deck, total = Deck([]), math.nan
        for draw, chance in enumerate(uniform(f"{name} most", len(totals))):
            if totals[draw] != total:
                total = totals[draw]
                deck = self._near(total, used)
            most, beyond = deck.drawn(max(MORE * used, LEAST_CORES), chance)
            if beyond is not None:
                most = self._more_than(max(used, most if most > MORE * used else 0.0), self._beyond[draw])
            mosts.append(most)
        return mosts

    def _near(self, total: float, used: float) -> Deck:
        at = bisect_left(self._totals, total)
        if used <= LEAST_CORES and at < len(self._known) and self._totals[at] == total and self._known[at].most[1]:
            return Deck([self._known[at].most])  # a length that was drawn brings the cores of its trial
        return Deck(like.most for like in self._known[max(0, at - LIKE) : at + LIKE])

    def _more_than(self, used: float, beyond: float) -> float:
        if used <= LEAST_CORES or used >= self._largest:
            return self._largest
        return float(used * (self._largest / used) ** (1 - beyond))
