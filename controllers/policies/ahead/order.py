"""In what order trials start where more wait than fit: the shortest first, but none so late that the sweep waits. Pure.

With whole devices, or requests that fill the nodes, a trial runs alone on what it holds, and only the order is left to
choose. To start the shortest first is best for the mean (Smith 1956), but keeps the longest for the end, where they run
on after all others. To start the longest first (LPT, Graham 1969) ends the sweep early, with the worst mean. Both come
together: all trials are dealt out to the places that there are, the longest first, each to the place with the least to
do; and a place with so much to do that it will be one of the last begins with the shortest that it was dealt. Its sum
is that of LPT whatever its own order is. Other places have time to spare, and begin with the shortest of all.

Where trials ask for unlike room, a wide one takes the place of several: there, length times width counts.

Lengths are guesses. What a place has to do counts with a margin for that. Many short trials make up for each other's
errors, and one long trial does not: so the longest come to lie alone on their places, and start at once.

Where each place has many trials, the longest would still all come last, with nothing short behind them to make up for
what was guessed wrong. There a place ends with some of its short ones: of the last few it begins with the longest. The
mean hardly suffers, as only those few of many end later. Where a place has few, it would suffer much.

The cards are dealt again in each decision, those that run along with the others. Each of these lies on a place of its
own, but on which one is as open as for the rest: so the deal comes out much as it did before.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from controllers.core.model import TrialId

LAST: Final = 0.9
"""A place counts as one of the last if its end, with its margin, comes after this part of the latest guessed end."""
MARGIN: Final = 2.0
"""A place may have so many standard deviations more to do than is guessed: the guess of the longest of a hundred trials
was probably too low. Chosen in simulation on C3, C4 and V1."""
MANY: Final = 8.0
"""With so many trials for each place, those that run or have ended among them, a place's last ``FEW`` start the longest
first. Chosen in simulation on C3."""
FEW: Final = 3
PATIENCE: Final = 4.0
"""A trial is overtaken only by those submitted within this many times its own length after it."""


@dataclass(frozen=True, slots=True)
class Length:
    """The ``seconds`` that a trial will take, as far as is known, and the standard deviation of them."""

    seconds: float
    deviation: float = 0.0

    @property
    def at_most(self) -> float:
        """What it takes if the guess is low."""
        return self.seconds + MARGIN * self.deviation


@dataclass(frozen=True, slots=True)
class Waiting:
    """A trial that waits for room: when it was submitted, how long it is, and how ``wide`` beside the mean of all."""

    trial: TrialId
    submitted_at: float
    length: Length
    wide: float = 1.0

    @property
    def due(self) -> float:
        """When it should have started: the one of two that takes less is due first, unless it came much later."""
        return self.submitted_at + PATIENCE * self.length.seconds * self.wide


@dataclass(slots=True)
class _Place:
    """What lies on a place: seconds in all, their variance, and the seconds of each trial that waits."""

    seconds: float = 0.0
    variance: float = 0.0
    waiting: list[float] = field(default_factory=list)

    def take(self, length: Length, *, waits: bool) -> float:
        """Put a trial there, and return what the place now has to do at most."""
        self.seconds += length.seconds
        self.variance += length.deviation**2
        if waits:
            self.waiting.append(length.seconds)
        return self.at_most

    @property
    def at_most(self) -> float:
        return self.seconds + MARGIN * math.sqrt(self.variance)

    def first(self, *, many: bool) -> float:
        """Return the seconds of the trial that the place begins with; ``many`` tells that it had many to begin with."""
        guessed = self.variance > 0
        return max(self.waiting) if many and guessed and len(self.waiting) <= FEW else min(self.waiting)


@dataclass(frozen=True, slots=True)
class Queue:
    """Trials that ask for the same, and thus wait for the same room.

    ``busy`` holds what is left of each trial of this kind that runs; ``free`` is how many more fit now; ``ended`` how
    many of this kind have ended.
    """

    waiting: Sequence[Waiting]
    busy: Sequence[Length]
    free: int
    ended: int = 0


def starting_order(queues: Sequence[Queue], *, protect_end: bool) -> list[TrialId]:
    """Return the trials in the order in which they should be tried to be started.

    First those that must start now, lest the sweep end later; then by when each is due, which among trials submitted
    together is the shortest first. Where all that ask for the same fit, they come in the order of submission.

    Every trial starts at some time: only trials that were submitted before it was due itself are ahead of it. So once
    it is due, no new trial overtakes it, and it starts, if it fits, when those before it have started at the latest.

    Args:
        queues: All that waits; no trial twice.
        protect_end: Whether the sweep's end counts: while more trials arrive nobody knows which will end it.
    """
    first_due = min((waiting.due for queue in queues for waiting in queue.waiting), default=0.0)
    ranks: list[tuple[bool, float, float, TrialId]] = []
    for queue in queues:
        all_fit = queue.free >= len(queue.waiting)
        first = _dealt_to_free_places(queue, first_due) if protect_end and queue.free and not all_fit else frozenset()
        for waiting in queue.waiting:
            key = waiting.submitted_at if all_fit else waiting.due
            ranks.append((waiting.trial not in first, key, waiting.submitted_at, waiting.trial))
    return [trial for *_, trial in sorted(ranks)]


def longest_to_fastest(queues: Sequence[Queue], order: Sequence[TrialId]) -> list[TrialId]:
    """Return ``order`` with the trials of each queue that can start now among each other from the longest on.

    The same trials start, whichever is tried first; but the first to be tried gets the fastest place.
    """
    turned, places = list(order), {trial: place for place, trial in enumerate(order)}
    for queue in queues:
        lengths = {waiting.trial: waiting.length.seconds for waiting in queue.waiting}
        starting = sorted(lengths, key=lambda trial: places[trial])[: queue.free]
        for place, trial in zip(
            [places[trial] for trial in starting],
            sorted(starting, key=lambda trial: (-lengths[trial], trial)),
            strict=True,
        ):
            turned[place] = trial
    return turned


def _dealt_to_free_places(queue: Queue, first_due: float) -> frozenset[TrialId]:
    """Return the trials that those of the free places begin with which will be among the last to be done.

    Those submitted after ``first_due``, when somebody was due, are left out: they would overtake that one.
    """
    line = sorted(queue.waiting, key=lambda waiting: (waiting.due, waiting.submitted_at, waiting.trial))
    places = [_Place() for _ in range(len(queue.busy) + queue.free)]
    free, taken = [(0.0, number) for number in range(len(places))], list[tuple[float, int]]()
    cards = [(waiting.length, True) for waiting in line] + [(length, False) for length in queue.busy]
    for length, waits in sorted(cards, key=lambda card: (card[0].at_most, card[1]), reverse=True):
        to_free = bool(free) and (not waits or not taken or free[0] < taken[0])
        _, number = heappop(free if to_free else taken)
        heappush(free if to_free and waits else taken, (places[number].take(length, waits=waits), number))
    end = max(place.seconds for place in places)
    last = [places[number] for at_most, number in free if at_most >= LAST * end and places[number].waiting]
    many = len(cards) + queue.ended >= MANY * len(places)
    wanted = Counter(place.first(many=many) for place in last)
    first: set[TrialId] = set()
    for waiting in line:  # Of trials that are as long, the one that is due first.
        if wanted[waiting.length.seconds] and waiting.submitted_at <= first_due:
            wanted[waiting.length.seconds] -= 1
            first.add(waiting.trial)
    return frozenset(first)
