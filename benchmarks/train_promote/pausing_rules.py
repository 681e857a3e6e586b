"""Hyperband and PASHA with trials that wait with their checkpoint, as Syne Tune has them (0.13, the last with both).

Li et al., Hyperband, JMLR 2018; Bohdal et al., PASHA, ICLR 2023. A trial trains to a rung and waits there; where a slot
is free, the best that waits goes on if it is within the quantile of its rung, and a new one starts if none is. Both
compare the value at the rung.
"""

import heapq
import zlib
from bisect import insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final, Protocol

import numpy as np

from benchmarks.train_promote.sweeps import START, End, end_of
from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats

FEWEST_RUNGS: Final = 3
"""With fewer, PASHA has no two rungs to compare below the end."""


class Scheduler(Protocol):
    """Says who trains next, and how far."""

    def turn(self, new: int | None) -> tuple[int, int] | None:
        """Return the trial that takes a free slot and the part that it trains to; ``new`` has not begun yet."""

    def report(self, trial: int, part: int) -> None:
        """Note the value of a trial that has just made ``part`` parts."""


def paused(trials: int, slots: int, scheduler: Scheduler) -> tuple[list[int], float]:
    """Return how many parts each trial made under ``scheduler``, and when nobody could go on, in trials."""
    running: list[tuple[float, int, int]] = []
    made, now, new = [0] * trials, 0.0, deque(range(trials))
    while True:
        while len(running) < slots:
            step = scheduler.turn(new[0] if new else None)
            if step is None:
                break
            if new and step[0] == new[0]:
                new.popleft()
            heapq.heappush(running, (now + START + 1 / PARTS, *step))
        if not running:
            return made, now
        now, trial, target = heapq.heappop(running)
        made[trial] += 1
        if made[trial] < target:
            heapq.heappush(running, (now + 1 / PARTS, trial, target))
        scheduler.report(trial, made[trial])


def levels(first: int, eta: int) -> list[int]:
    """Return the rungs in parts below the end, rising."""
    return [first * eta**rung for rung in range(PARTS) if first * eta**rung < PARTS]


class Rungs:
    """Values at each rung, and who has gone on from it."""

    def __init__(self, at: Sequence[int]) -> None:
        self.levels = list(at)
        self.shares = [one / following for one, following in zip(at, [*at, PARTS][1:], strict=True)]
        self.there: list[list[tuple[float, int]]] = [[] for _ in at]
        self.gone: list[set[int]] = [set() for _ in at]

    def first(self) -> int:
        """Return the part to which a new trial trains."""
        return self.levels[0] if self.levels else PARTS

    def arrives(self, trial: int, part: int, value: float) -> None:
        """Note a trial's value, if the part that it has made is a rung."""
        if part in self.levels:
            insort(self.there[self.levels.index(part)], (value, trial), key=itemgetter(0))

    def promoted(self, cap: int) -> tuple[int, int] | None:
        """Let the best that waits at the highest rung below ``cap`` that lets one go on, and return where to."""
        target = PARTS
        for rung in reversed(range(len(self.levels))):
            place = self._next(rung) if self.levels[rung] < cap else None
            if place is not None:
                entry = self.there[rung].pop(place)
                insort(self.there[rung], entry, key=itemgetter(0))
                self.gone[rung].add(entry[1])
                return entry[1], target
            target = self.levels[rung]
        return None

    def _next(self, rung: int) -> int | None:
        """Return the place of the best trial that waits at a rung, if it is within the quantile."""
        there = self.there[rung]
        if len(there) <= 1:
            return None
        place = next((place for place, (_, trial) in enumerate(there) if trial not in self.gone[rung]), None)
        at = (len(there) - 1) * self.shares[rung] + 1
        below, part = int(at) - 1, at - int(at)
        cutoff = part * there[below + 1][0] + (1 - part) * there[below][0]
        return place if place is not None and there[place][0] <= cutoff else None


class HyperbandScheduler:
    """Brackets with rungs of their own, the first of each a rung higher; the last trains all that it gets to the end.

    A free slot draws a bracket with the odds that Hyperband's brackets have by size. Once all trials have begun and
    nobody may go on in the bracket that was drawn, the others are asked in order.
    """

    def __init__(self, values: Floats, first: int, eta: int) -> None:
        self.values = values
        rungs = levels(first, eta)
        self.brackets = [Rungs(rungs[bracket:]) for bracket in range(len(rungs) + 1)]
        sizes = np.array([1 / ((len(rungs) + 1 - bracket) * one) for bracket, one in enumerate([*rungs, PARTS])])
        self.odds = sizes / sizes.sum()
        self.chance = np.random.RandomState(zlib.crc32(values.tobytes()))
        self.dealt: dict[int, Rungs] = {}

    def turn(self, new: int | None) -> tuple[int, int] | None:
        """See ``Scheduler``."""
        drawn = self.brackets[self.chance.choice(len(self.odds), p=self.odds)]
        step = drawn.promoted(PARTS)
        if step is None and new is not None:
            self.dealt[new] = drawn
            return new, drawn.first()
        return step or next(filter(None, (bracket.promoted(PARTS) for bracket in self.brackets)), None)

    def report(self, trial: int, part: int) -> None:
        """See ``Scheduler``."""
        self.dealt[trial].arrives(trial, part, float(self.values[trial, part - 1]))


class PashaScheduler:
    """Nobody trains past the top rung so far; it rises where the order there is not that of the rung below.

    Two trials whose values at the rung below differ by at most ``epsilon`` are alike: the 90th percentile of how far
    apart trials are whose curves cross twice (section 4.2 of the paper).
    """

    def __init__(self, values: Floats, first: int, eta: int) -> None:
        self.values = values
        self.rungs = Rungs(levels(first, eta))
        if len(self.rungs.levels) < FEWEST_RUNGS:
            message = f"PASHA needs {FEWEST_RUNGS} rungs below the end; a first at {first} and eta {eta} give fewer"
            raise ValueError(message)
        self.top, self.cap = 1, self.rungs.levels[1]
        self.epsilon = 0.0
        self.made = np.zeros(len(values), int)
        self.crossed = np.full((len(values), len(values)), np.nan)

    def turn(self, new: int | None) -> tuple[int, int] | None:
        """See ``Scheduler``."""
        step = self.rungs.promoted(self.cap)
        return step or (None if new is None else (new, self.rungs.first()))

    def report(self, trial: int, part: int) -> None:
        """See ``Scheduler``. Only what is between the two top rungs tells something new of their order."""
        if part == PARTS:
            return
        self.rungs.arrives(trial, part, float(self.values[trial, part - 1]))
        self.made[trial] = part
        if not self.rungs.levels[self.top - 1] < part <= self.rungs.levels[self.top]:
            return
        self._compare(trial, part)
        self._estimate()
        if self._changes():
            rises = self.top + 1 < len(self.rungs.levels)
            self.top += rises
            self.cap = self.rungs.levels[self.top] if rises else PARTS

    def _compare(self, trial: int, part: int) -> None:
        """Note how far a trial is from each that has come as far, where the two curves have crossed twice."""
        others = np.flatnonzero((self.made >= part) & (np.arange(len(self.made)) != trial))
        theirs, own = self.values[others, :part], self.values[trial, :part]
        above = theirs > own
        same = (above == above[:, -1:])[:, :-1]
        twice = (np.logical_or.accumulate(same, axis=1) & ~same).any(axis=1)
        apart = np.where(twice, np.abs(theirs[:, -1] - own[-1]), np.nan)
        self.crossed[np.minimum(others, trial), np.maximum(others, trial)] = apart

    def _estimate(self) -> None:
        far = self.made > self.rungs.levels[self.top - 1]
        apart = np.sort(self.crossed[far][:, far], axis=None)
        count = int(np.isfinite(apart).sum())
        if count:
            below, part = divmod(0.9 * (count - 1), 1)
            one, other = apart[int(below)], apart[min(int(below) + 1, count - 1)]
            self.epsilon = float(one + part * (other - one))

    def _changes(self) -> bool:
        """Return whether a trial of the top rung has another place there than among the same at the rung below."""
        trials = [trial for _, trial in self.rungs.there[self.top]]
        below = self.values[trials, self.rungs.levels[self.top - 1] - 1]
        ranked, epsilon = np.sort(below), self.epsilon if len(below) > 1 else 0.0
        return bool(((below > ranked + epsilon) | (below < ranked - epsilon)).any())


@dataclass(frozen=True, slots=True)
class Hyperband:
    """Hyperband without waiting, with trials that pause."""

    first: int
    eta: int

    @property
    def line(self) -> str:
        """What it is called in tables, but for its setting."""
        return f"Syne Tune Hyperband, eta {self.eta}"

    @property
    def setting(self) -> str:
        """What differs along its line."""
        return f"first rung {100 * self.first // PARTS} %"

    def run(self, values: Floats, slots: int) -> End:
        """Return what a sweep comes to."""
        return finished(values, slots, *paused(len(values), slots, HyperbandScheduler(values, self.first, self.eta)), 1)


@dataclass(frozen=True, slots=True)
class Pasha:
    """PASHA; then its best ``finalists`` train to their end, which it leaves to its user."""

    first: int
    eta: int
    finalists: int

    @property
    def line(self) -> str:
        """What it is called in tables, but for its setting."""
        return f"PASHA, eta {self.eta}, {self.finalists} to the end"

    @property
    def setting(self) -> str:
        """What differs along its line."""
        return f"first rung {100 * self.first // PARTS} %"

    def run(self, values: Floats, slots: int) -> End:
        """Return what a sweep comes to."""
        found = self._searched(values.tobytes(), values.shape, slots, self.first, self.eta)
        return finished(values, slots, *found, min(self.finalists, slots))

    @staticmethod
    @lru_cache(maxsize=16)
    def _searched(values: bytes, shape: tuple[int, int], slots: int, first: int, eta: int) -> tuple[list[int], float]:
        """Return what the search made; it is the same for any number of finalists, and slow."""
        return paused(shape[0], slots, PashaScheduler(np.frombuffer(values).reshape(shape), first, eta))


def finished(values: Floats, slots: int, made: Sequence[int], now: float, finalists: int) -> End:
    """Return what a sweep comes to; where nobody is at the end, the best of the highest rung go there, all at once."""
    highest = max(made)
    there = [trial for trial, part in enumerate(made) if part == highest]
    if highest < PARTS:
        there = sorted(there, key=lambda trial: float(values[trial, highest - 1]))[:finalists]
        now += START + (PARTS - highest) / PARTS
    return end_of(values, there, now, slots)


PAUSING_RULES: Final[tuple[Hyperband | Pasha, ...]] = (
    *(Hyperband(first, eta) for eta in (2, 3, 4) for first in (1, 4, 8)),
    *(
        Pasha(first, eta, finalists)
        for finalists in (1, 4)
        for eta in (2, 3, 4)
        for first in (1, 2, 4, 8)
        if len(levels(first, eta)) >= FEWEST_RUNGS
    ),
)
