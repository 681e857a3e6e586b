"""What can go wrong in a simulated cluster, as data: each fault happens at its time or to its attempt, always the same.

Times are seconds of virtual time. ``fault_injection`` carries out those that have a time of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from controllers.core.model import NodeName, TrialId
from controllers.worlds.simulated.errors import WorkloadError


@dataclass(frozen=True, slots=True)
class Fault:
    """Amounts are never negative, NaN or infinite."""

    def __post_init__(self) -> None:
        for field in fields(self):
            amount = getattr(self, field.name)
            if isinstance(amount, int | float) and not 0 <= amount < math.inf:
                message = f"{type(self).__name__}: {field.name} must be finite and at least 0, not {amount}"
                raise WorkloadError(message)


@dataclass(frozen=True, slots=True)
class NodeLoss(Fault):
    """``node`` stops at ``at``, and its attempts with it. Known ``known_after_s`` later, back ``back_after_s`` later.

    A node that is back before its loss was known has rebooted: its attempts are found dead then.
    """

    node: NodeName
    at: float
    known_after_s: float
    back_after_s: float
    kind: Literal["node loss"] = "node loss"


@dataclass(frozen=True, slots=True)
class Crowding(Fault):
    """Pods of others request up to ``cpu`` cores of ``node`` for ``seconds``, as far as attempts there leave room."""

    node: NodeName
    at: float
    seconds: float
    cpu: float
    kind: Literal["crowding"] = "crowding"


@dataclass(frozen=True, slots=True)
class TrialCrash(Fault):
    """The attempt of ``trial`` that runs at ``at``, if one does, crashes."""

    trial: TrialId
    at: float
    kind: Literal["trial crash"] = "trial crash"


@dataclass(frozen=True, slots=True)
class StartFailure(Fault):
    """The ``attempt``-th attempt of ``trial`` ends before its training process begins."""

    trial: TrialId
    attempt: int
    kind: Literal["start failure"] = "start failure"


@dataclass(frozen=True, slots=True)
class WorkerMissing(Fault):
    """One worker of the ``attempt``-th attempt of ``trial``, a gang, never starts."""

    trial: TrialId
    attempt: int
    kind: Literal["worker missing"] = "worker missing"


@dataclass(frozen=True, slots=True)
class RestoreFault(Fault):
    """Restoring takes the ``attempt``-th attempt ``seconds`` longer; the newest checkpoint may be ``broken``."""

    trial: TrialId
    attempt: int
    seconds: float
    broken: bool
    kind: Literal["restore fault"] = "restore fault"


@dataclass(frozen=True, slots=True)
class ResizeDelay(Fault):
    """A resize that is asked for within ``seconds`` after ``at`` takes ``delay_s`` longer to take hold."""

    at: float
    seconds: float
    delay_s: float
    kind: Literal["resize delay"] = "resize delay"


@dataclass(frozen=True, slots=True)
class SpotLoss(Fault):
    """The provider takes one node of ``group``, if one is there, and says so at ``at``, ``notice_s`` before."""

    group: str
    at: float
    notice_s: float
    kind: Literal["spot loss"] = "spot loss"


@dataclass(frozen=True, slots=True)
class BootFault(Fault):
    """The ``boot``-th node of ``group`` (from 1) takes ``seconds`` longer to come, or ``never`` comes."""

    group: str
    boot: int
    seconds: float
    never: bool
    kind: Literal["boot fault"] = "boot fault"


WorldFault = (
    NodeLoss | Crowding | TrialCrash | StartFailure | WorkerMissing | RestoreFault | ResizeDelay | SpotLoss | BootFault
)


class FaultLookup:
    """The faults that have no time of their own but wait for an attempt or an action, found by what they befall."""

    def __init__(self, faults: Sequence[WorldFault] = ()) -> None:
        self._starts = {(fault.trial, fault.attempt) for fault in faults if isinstance(fault, StartFailure)}
        self._missing = {(fault.trial, fault.attempt) for fault in faults if isinstance(fault, WorkerMissing)}
        self._restores = {(fault.trial, fault.attempt): fault for fault in faults if isinstance(fault, RestoreFault)}
        self._boots = {(fault.group, fault.boot): fault for fault in faults if isinstance(fault, BootFault)}
        self._delays = [fault for fault in faults if isinstance(fault, ResizeDelay)]

    def start_fails(self, trial: TrialId, attempt: int) -> bool:
        """Return whether an attempt ends before its training process begins."""
        return (trial, attempt) in self._starts

    def worker_missing(self, trial: TrialId, attempt: int) -> bool:
        """Return whether a worker of an attempt never starts."""
        return (trial, attempt) in self._missing

    def restore(self, trial: TrialId, attempt: int) -> tuple[float, bool]:
        """Return the seconds that an attempt restores longer, and whether the newest checkpoint is broken."""
        fault = self._restores.get((trial, attempt))
        return (0.0, False) if fault is None else (fault.seconds, fault.broken)

    def boot(self, group: str, boot: int) -> tuple[float, bool]:
        """Return the seconds that a node of a group takes longer to come, and whether it never does."""
        fault = self._boots.get((group, boot))
        return (0.0, False) if fault is None else (fault.seconds, fault.never)

    def resize_delay_s(self, now: float) -> float:
        """Return the seconds by which a resize that is asked for ``now`` comes late."""
        return sum(fault.delay_s for fault in self._delays if fault.at <= now <= fault.at + fault.seconds)
