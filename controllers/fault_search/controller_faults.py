"""What can go wrong with a controller and with what it is told, as data. Times are seconds of virtual time."""

import math
from dataclasses import dataclass
from typing import Literal

from controllers.model import TrialId
from controllers.worlds.simulated.faults import Fault

METRIC_TROUBLES = ("away", "late", "old", "again", "nan", "infinite")


@dataclass(frozen=True, slots=True)
class ControllerCrash(Fault):
    """The controller dies in its first tick from ``at`` on, at the ``call``-th edge of what it calls, for ``down_s``.

    Each call of a port has two edges, before and after it: 0 comes before anything. A shorter tick is finished.
    """

    at: float
    call: int
    down_s: float
    kind: Literal["controller crash"] = "controller crash"


@dataclass(frozen=True, slots=True)
class SlowController(Fault):
    """The world goes on for ``seconds`` in the middle of the first tick from ``at`` on, at the ``call``-th edge."""

    at: float
    call: int
    seconds: float
    kind: Literal["slow controller"] = "slow controller"


@dataclass(frozen=True, slots=True)
class Refusal(Fault):
    """Actions of one kind are refused for ``seconds``."""

    action: Literal["Resize", "Migrate", "Place"]
    at: float
    seconds: float
    kind: Literal["refusal"] = "refusal"


@dataclass(frozen=True, slots=True)
class ClockStep(Fault):
    """The controller's clock jumps by ``seconds``, back where that is negative."""

    at: float
    seconds: float
    kind: Literal["clock step"] = "clock step"

    def __post_init__(self) -> None:
        if not (self.at >= 0 and math.isfinite(self.at + self.seconds)):
            message = f"a clock can't step by {self.seconds} s at {self.at} s"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class MetricFault(Fault):
    """For ``seconds`` the metrics of ``trial`` (None: of all) are in ``trouble``.

    ``away``: there are none. ``late``: they stay as they were. ``old``: the first one comes again. ``again``: the
    newest one, a second later. ``nan``, ``infinite``: so is their value.
    """

    trouble: Literal["away", "late", "old", "again", "nan", "infinite"]
    trial: TrialId | None
    at: float
    seconds: float
    kind: Literal["metric fault"] = "metric fault"


ControllerFault = ControllerCrash | SlowController | Refusal | ClockStep | MetricFault
CONTROLLER_FAULTS = (ControllerCrash, SlowController, Refusal, ClockStep, MetricFault)
