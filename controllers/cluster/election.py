"""The rules by which a Lease elects a leader, without a thread, clock or cluster of their own.

The rules are client-go's. A candidate never compares its clock with a timestamp that another wrote: it takes a lease
only after having *watched* it unchanged for its whole duration, and the holder counts its own time from *before* each
write was sent, over a shorter deadline. So two never lead at once as long as their clocks run at about the same rate
(duration to deadline, 3 to 2 by default). The kubernetes package's own election compares wall clocks, counts from
after the write, and cannot hand a lease back; hence this one.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

from controllers.core.errors import SpeconError


class LeaseTimingError(SpeconError):
    """With such durations of a lease two could lead at once, or nobody for long."""


class LeaseUnavailableError(SpeconError):
    """The lease could not be read or written; whether a write happened is unknown."""


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds. ``duration``: after it, unrenewed, another may lead. ``deadline``: after it the leader stops.

    ``retry`` lies between two attempts to take or renew the lease.

    Raises:
        LeaseTimingError: they do not leave the leader the time to stop before another begins.
    """

    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.deadline < self.duration:
            message = (
                f"a lease needs 0 < retry < deadline < duration, got retry {self.retry:g}, "
                f"deadline {self.deadline:g}, duration {self.duration:g} seconds"
            )
            raise LeaseTimingError(message)


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease as stored. ``holder`` is empty where it was handed back; ``version`` changes with every write."""

    holder: str
    duration: float
    transitions: int = 0
    version: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """Ask for the lease; the answer is None where there is none."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make the lease; the answer is None where somebody else was first."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Replace:
    """Write the lease where its ``version`` is still the stored one; the answer is None where it is not."""

    lease: Lease


Request = Read | Create | Replace
Round = Generator[Request, Lease | None, None]


class Election:
    """One candidate. Its rounds yield requests and are sent the answers, or a ``LeaseUnavailableError``.

    Args:
        identity: different for every process that ever competes.
        timing: the same for all candidates.
        clock: seconds that never go back.
    """

    def __init__(self, identity: str, timing: LeaseTiming, clock: Callable[[], float]) -> None:
        self.identity = identity
        self.timing = timing
        self._clock = clock
        self._holder = ""
        self._duration = 0.0
        self._version: str | None = None
        self._changed_at = -math.inf
        self._leads_until = -math.inf

    @property
    def leading(self) -> bool:
        """Whether to act now. Ask again before every act: it ends by itself."""
        return self._clock() < self._leads_until

    @property
    def holder(self) -> str:
        """Who held the lease when it was last looked at; empty if nobody did."""
        return self._holder

    def round(self) -> Round:
        """Look at the lease once, and take or renew it if it is free or ours."""
        lease = yield Read()
        self._notice(lease)
        free = self._holder in {"", self.identity}
        if not free and self._clock() < self._changed_at + self._duration:
            return
        claim = self._claim(lease)
        # The time before the write was sent: another candidate may see it as early as then.
        began = self._clock()
        written = yield (Create(claim) if lease is None else Replace(claim))
        if written is not None:
            self._notice(written)
            self._leads_until = began + self.timing.deadline

    def hand_back(self) -> Round:
        """Stop leading and let another lead at once. Run it only once nothing is being done any more."""
        self._leads_until = -math.inf
        lease = yield Read()
        if lease is not None and lease.holder == self.identity:
            yield Replace(Lease("", lease.duration, lease.transitions, lease.version))

    def _claim(self, lease: Lease | None) -> Lease:
        if lease is None:
            return Lease(self.identity, self.timing.duration)
        changes_hands = lease.holder != self.identity
        return Lease(self.identity, self.timing.duration, lease.transitions + changes_hands, lease.version)

    def _notice(self, lease: Lease | None) -> None:
        version = "" if lease is None else lease.version
        if version == self._version:
            return
        self._version, self._changed_at = version, self._clock()
        if lease is None:
            return  # deleted by hand: the replica that held it still acts until its deadline
        self._holder, self._duration = lease.holder, lease.duration
        if lease.holder != self.identity:
            self._leads_until = -math.inf
