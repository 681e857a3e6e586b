"""How the time of one look at what trials write is shared: nobody is starved, and the reader is back soon."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mlflow_hooks.bounds import LOOK_S, MOST_BEHIND, NEWEST, READ_PART, READ_S

_Item = TypeVar("_Item")


@dataclass(slots=True)
class SharedLooks:
    """Gives out the time of each look.

    Args:
        clock: gives seconds.
        seconds: what a look takes at most.
    """

    clock: Callable[[], float] = time.monotonic
    seconds: float = LOOK_S
    _first: int = field(default=0, init=False)

    def at_each(self, items: Sequence[_Item]) -> Iterator[tuple[_Item, float]]:
        """Yield each of ``items``, and until when it may be read.

        What an item leaves of its part is for those after it. Those that are not reached come first in the next look.
        """
        end = self.clock() + self.seconds
        first, self._first = self._first % max(1, len(items)), 0
        for passed, item in enumerate([*items[first:], *items[:first]]):
            now = self.clock()
            if now >= end:
                self._first = first + passed
                return
            yield item, now + (end - now) / (len(items) - passed)


@dataclass(slots=True)
class Reach:
    """How far a file that grows was read, and how much longer that may take.

    Attributes:
        offset: the bytes that were read, or passed over.
        at: when it was read last.
        left_s: seconds for which reading it may go on; some come back as time passes.
        passed: bytes that were passed over, as the file grew faster than it can be read.
    """

    offset: int
    at: float
    left_s: float = READ_S
    passed: int = 0

    def catch_up(self, size: int, now: float) -> int:
        """Begin a look at a file of ``size`` bytes; return how many are passed over, for what is newer."""
        late = self.left_s <= 0
        self.left_s = min(READ_S, self.left_s + READ_PART * (now - self.at))
        self.at = now
        passed = max(0, size - self.offset - (NEWEST if late else MOST_BEHIND))
        self.offset += passed
        self.passed += passed
        return passed

    def read(self, much: int, now: float) -> None:
        """Take note that ``much`` bytes more were read by ``now``."""
        self.offset += much
        self.left_s -= now - self.at
        self.at = now

    def goes_on(self, size: int) -> bool:
        """Return whether there is time for more; the newest bytes are read in any case."""
        return self.left_s > 0 or size - self.offset <= NEWEST
