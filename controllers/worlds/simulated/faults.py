"""What can go wrong in a simulated cluster, as data: each fault happens at its time or to its attempt, always the same.

Times are seconds of virtual time.
"""

import math
from dataclasses import dataclass, fields
from typing import Literal

from controllers.core.model import NodeName, TrialId
from controllers.worlds.simulated.workload import WorkloadError


@dataclass(frozen=True, slots=True)
class Fault:
    """Amounts are never negative, NaN or infinite."""

    def __post_init__(self) -> None:
        for field in fields(self):
            amount = getattr(self, field.name)
            if isinstance(amount, int | float) and not 0 <= amount < math.inf:
                message = f"{type(self).__name__}: {field.name} can't be {amount}"
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


WorldFault = NodeLoss | Crowding | TrialCrash | StartFailure | RestoreFault | ResizeDelay
