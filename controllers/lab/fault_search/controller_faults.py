"""What can go wrong with a controller and with what it is told, as data. Times are seconds of virtual time."""

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

from controllers.core.model import TrialId
from controllers.worlds.simulated.faults import Fault

MetricTrouble = Literal["away", "late", "old", "again", "nan", "infinite"]
METRIC_TROUBLES: Final[tuple[MetricTrouble, ...]] = get_args(MetricTrouble)


@dataclass(frozen=True, slots=True)
class ControllerCrash(Fault):
    """The controller dies for ``down_s`` in the first tick from ``at`` on that comes to its ``edge``-th edge.

    An edge is where one could die between two effects: before a look at metrics, trials and nodes (0 to 2), before and
    after the state is saved (3 and 4), then before and after each action and before it is recorded.
    """

    at: float
    edge: int
    down_s: float
    kind: Literal["controller crash"] = "controller crash"


@dataclass(frozen=True, slots=True)
class SlowController(Fault):
    """The world goes on for ``seconds`` at the ``edge``-th edge of the first tick from ``at`` on that comes to it."""

    at: float
    edge: int
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

    trouble: MetricTrouble
    trial: TrialId | None
    at: float
    seconds: float
    kind: Literal["metric fault"] = "metric fault"


ControllerFault = ControllerCrash | SlowController | Refusal | ClockStep | MetricFault
CONTROLLER_FAULTS = (ControllerCrash, SlowController, Refusal, ClockStep, MetricFault)
