"""In what order trials start where more wait than fit: the shortest first, but none so late that the sweep waits. Pure.

With whole devices, or requests that fill the nodes, a trial runs alone on what it holds, and only the order is left to
choose. To start the shortest first is best for the mean (Smith 1956), but keeps the longest for the end, where they run
on after all others. To start the longest first (LPT, Graham 1969) ends the sweep early, with the worst mean. Both come
together: all trials are dealt out to the places that there are, the longest first, each to the place with the least to
do; and a place with so much to do that it will be one of the last begins with the shortest that it was dealt. Its sum
is that of LPT whatever its own order is. Other places have time to spare, and begin with the shortest of all.

The cards are dealt anew in each decision, those that run along with the others. Each of these lies on a place of its
own, but on which one is as open as for the rest: so the deal comes out much as it did before.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from controllers.core.model import TrialId

LAST: Final = 0.9
"""Part of the most that a place has to do from which on a place counts as one of the last."""
PATIENCE: Final = 4.0
"""A trial is overtaken only by those submitted within this many times its own length after it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A trial that waits for room: when it was submitted, and the seconds that it will take, as far as is known."""

    trial: TrialId
    submitted_at: float
    seconds: float

    @property
    def due(self) -> float:
        """When it should have started: the shorter of two trials is due first, unless it came much later."""
        return self.submitted_at + PATIENCE * self.seconds


@dataclass(frozen=True, slots=True)
class Queue:
    """Trials that ask for the same, and thus wait for the same room.

    ``busy`` holds the seconds until each trial of this kind that runs will be done; ``free`` is how many more fit now.
    """

    waiting: Sequence[Waiting]
    busy: Sequence[float]
    free: int


def starting_order(queues: Sequence[Queue], *, protect_end: bool) -> list[TrialId]:
    """Return the trials in the order in which they should be tried to be started.

    First those that must start now, lest the sweep end later; then by when each is due, which among trials submitted
    together is the shortest first. Where all that ask for the same fit, they come in the order of submission.

    Nobody waits for ever: a trial is only ever behind trials that were submitted before it was due itself. So once it
    is due it is overtaken by nobody new, and starts at the latest, if it fits, when those before it have.

    Args:
        queues: All that waits; no trial twice.
        protect_end: Whether the sweep's end counts: while more trials arrive nobody knows which will end it.
    """
    first_due = min((one.due for queue in queues for one in queue.waiting), default=0.0)
    ranks: list[tuple[bool, float, float, TrialId]] = []
    for queue in queues:
        all_fit = queue.free >= len(queue.waiting)
        first = _dealt_to_free_places(queue, first_due) if protect_end and queue.free and not all_fit else frozenset()
        for one in queue.waiting:
            key = one.submitted_at if all_fit else one.due
            ranks.append((one.trial not in first, key, one.submitted_at, one.trial))
    return [trial for *_, trial in sorted(ranks)]


def _dealt_to_free_places(queue: Queue, first_due: float) -> frozenset[TrialId]:
    """Return the trials that those of the free places begin with which will be among the last to be done.

    Those submitted after ``first_due``, when somebody was due, are left out: they would overtake that one.
    """
    line = sorted(queue.waiting, key=lambda one: (one.due, one.submitted_at, one.trial))
    free = [(0.0, place) for place in range(len(queue.busy) + queue.free)]
    taken: list[tuple[float, int]] = []
    shortest: dict[int, float] = {}
    cards = sorted([(one.seconds, True) for one in line] + [(seconds, False) for seconds in queue.busy], reverse=True)
    for seconds, waits in cards:
        to_free = bool(free) and (not waits or not taken or free[0] < taken[0])
        load, place = heappop(free if to_free else taken)
        heappush(free if to_free and waits else taken, (load + seconds, place))
        if waits:
            shortest[place] = seconds
    end = max(load for load, _ in (*free, *taken))
    wanted = Counter(shortest[place] for load, place in free if place in shortest and load >= LAST * end)
    first: set[TrialId] = set()
    for one in line:  # Of trials that are as long, the one that is due first.
        if wanted[one.seconds] and one.submitted_at <= first_due:
            wanted[one.seconds] -= 1
            first.add(one.trial)
    return frozenset(first)
