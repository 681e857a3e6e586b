"""What is due in virtual time, in one order only: by time, then by kind, then in the order of asking."""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from controllers.core.model import NodeName, TrialId


class ClusterEventKind(IntEnum):
    """What happens; of several things at the same time, what frees room comes before what needs it."""

    PROGRESS = 0
    """The first of a node's attempts comes to the end of its stage."""
    LEFT = 1
    """An attempt that was told to leave has gone."""
    KILLED = 2
    """The grace of an attempt that was told to leave is over."""
    RESIZED = 3
    """A change of a share takes hold."""
    STARTED = 4
    """The training process of an attempt begins."""
    RESTORED = 5
    """It has loaded its checkpoint."""
    RETURNS = 6
    """The next attempt may be placed."""
    ARRIVES = 7
    """A trial is submitted."""
    SUPPLIED = 8
    """What others leave of a node's cores changes."""
    FAULT = 9
    """Something goes wrong, or is put right."""
    UNMET = 10
    """A gang's workers have waited long enough for those that did not come."""
    SCALED = 11
    """Nodes come or go, or the autoscaler looks what it needs."""


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event of ``subject``; void once the subject's ``version`` has gone on.

    The ``version`` of what has no subject is the number of the call that it makes.
    """

    kind: ClusterEventKind
    subject: TrialId | NodeName | None
    version: int = 0


class EventQueue:
    """A heap of events."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, ClusterEventKind, int, ClusterEvent]] = []
        self._number = 0

    @property
    def next_at(self) -> float:
        """Time of the first event, infinite where there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def put(self, at: float, due: ClusterEvent) -> None:
        """Add an event at ``at`` seconds."""
        heapq.heappush(self._heap, (at, due.kind, self._number, due))
        self._number += 1

    @property
    def pending(self) -> Iterator[tuple[float, ClusterEvent]]:
        """What is in it and when that is due, in no order."""
        return ((at, due) for at, _, _, due in self._heap)

    def pop(self) -> ClusterEvent:
        """Take the first event out."""
        return heapq.heappop(self._heap)[3]
