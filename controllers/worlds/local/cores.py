"""How many trials keep the cores of a node busy, by what those that run could use of them. Pure.

A trial whose author named no request counts as one core. One that waits, for a disk, a device or somebody else, is
told by what it uses and the cores that it waits for, and leaves room for more. Where nobody tells what it waits for,
idle cores tell a trial that can use no more from one that is kept from using them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LATE_S: Final = 10.0
"""Seconds over which the use of cores is averaged."""
SETTLED_S: Final = LATE_S + 5.0
"""An attempt's use of late counts only once it has run for so many seconds: by then its start, with files that a disk
must bring, is no part of it."""
CLEARLY_LESS: Final = 0.75
"""An attempt that can use less than this part of its request counts with what it can use, not with the request."""
HEADROOM: Final = 1.1
WORTH_STARTING: Final = 0.5
"""One more trial starts where this part of what it will use stands idle: it costs the others less than it wins."""

LEAST_IDLE: Final = 0.1
"""Cores that must stand idle so that one more starts: less is noise."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What an attempt holds of a node: the cores that it ``requested``, and those that it could have ``used`` of late.

    ``used`` is None where that tells nothing: its author named the request, or it is ``new`` and will tell.
    ``in_doubt`` tells that it may have waited for more cores than it used.
    """

    requested: float
    used: float | None = None
    new: bool = False
    in_doubt: bool = False

    @property
    def counts_as(self) -> float:
        """The cores that it leaves to nobody else."""
        if self.used is None or self.used >= CLEARLY_LESS * self.requested:
            return self.requested
        return HEADROOM * self.used


def room_for_more(cores: float, taken: Iterable[Taken], request: float, idle: float) -> float:
    """Return for how many cores of requests more attempts may come to a node.

    Args:
        cores: What the node has.
        taken: What is there.
        request: What one more requests, whose author named nothing.
        idle: Cores of the machine that nobody used of late: they count where some attempt is in doubt.
    """
    attempts = list(taken)
    left = cores - sum(attempt.counts_as for attempt in attempts)
    by_request = cores - sum(attempt.requested for attempt in attempts)
    told = [attempt.counts_as for attempt in attempts if attempt.counts_as < attempt.requested]
    beyond = min(left, idle) if any(attempt.in_doubt for attempt in attempts) else left
    all_told = told and not any(attempt.new for attempt in attempts)
    if all_told and max(LEAST_IDLE, WORTH_STARTING * sum(told) / len(told)) <= beyond < request:
        beyond = request
    return max(0.0, by_request, beyond)
