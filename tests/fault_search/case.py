"""One faulty run as data: a policy, a scenario and what goes wrong; kept as JSON, so that it can be run again.

Times are seconds of virtual time. Faults of the cluster are the simulated world's; those of the controller, and of what
it is told, are here.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from controllers.core.actions import ACTION_KINDS
from controllers.core.errors import SpeconError
from controllers.core.model import TrialId
from controllers.core.stop_rules import NO_RULES, StopRules
from controllers.policies.kit.settings import PolicyError
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.faults import Fault, WorldFault
from controllers.worlds.simulated.scenario import Scenario
from tests.fault_search.several_sweeps import NOT_SHARED, Sharing

MetricTrouble = Literal["away", "late", "old", "again", "nan", "infinite"]
METRIC_TROUBLES: Final[tuple[MetricTrouble, ...]] = get_args(MetricTrouble)
ACTION_NAMES: Final = tuple(kind.__name__ for kind in ACTION_KINDS)
"""What files call the kinds of action."""


class CaseError(SpeconError):
    """A file holds no case; the message names the file, the place in it and the offending value."""


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
class ActionRefusal(Fault):
    """The world refuses actions of one kind, by its name (``Resize``), for ``seconds``."""

    action: str
    at: float
    seconds: float
    kind: Literal["refusal"] = "refusal"

    def __post_init__(self) -> None:
        Fault.__post_init__(self)  # A class with slots is made a second time, so super() would look for the wrong one.
        if self.action not in ACTION_NAMES:
            message = f"refusal: action must be one of {', '.join(ACTION_NAMES)}, not {self.action!r}"
            raise WorkloadError(message)


@dataclass(frozen=True, slots=True)
class ClockStep(Fault):
    """The controller's clock jumps by ``seconds``, back where that is negative."""

    at: float
    seconds: float
    kind: Literal["clock step"] = "clock step"

    def __post_init__(self) -> None:
        if not (self.at >= 0 and math.isfinite(self.at + self.seconds)):
            message = f"clock step: at must be at least 0 and seconds finite, not {self.at} and {self.seconds}"
            raise WorkloadError(message)


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


ControllerFault = ControllerCrash | SlowController | ActionRefusal | ClockStep | MetricFault


@dataclass(frozen=True)
class Case:
    """All that a faulty run depends on.

    ``policy`` is as people type it. ``journal_every_s`` is how seldom the controller keeps a state that is not urgent.
    ``stops`` are the rules that end each of its sweeps early. ``sharing`` says whose each sweep is, where each has an
    engine of its own.
    """

    policy: str
    scenario: Scenario
    faults: tuple[WorldFault | ControllerFault, ...] = ()
    journal_every_s: float = 0.0
    stops: StopRules = NO_RULES
    sharing: Sharing = NOT_SHARED

    @property
    def world_faults(self) -> tuple[WorldFault, ...]:
        """What befalls the cluster."""
        return tuple(fault for fault in self.faults if not isinstance(fault, ControllerFault))

    @property
    def controller_faults(self) -> tuple[ControllerFault, ...]:
        """What befalls the controller."""
        return tuple(fault for fault in self.faults if isinstance(fault, ControllerFault))

    @property
    def size(self) -> str:
        """How much there is of what, in words."""
        workload = self.scenario.workload
        groups = f", {len(workload.groups)} groups" if workload.groups else ""
        owners = f", {len(self.sharing.owners)} sweeps with owners" if self.sharing else ""
        return f"{len(workload.trials)} trials, {len(workload.nodes)} nodes{groups}{owners}, {len(self.faults)} faults"


_CASE = TypeAdapter(Case)


def dump_case(case: Case) -> str:
    """Return ``case`` as JSON; NaN and infinities are strings in it."""
    return json.dumps(to_jsonable_python(case, inf_nan_mode="strings"), indent=1) + "\n"


def load_case(file: Path) -> Case:
    """Read back what ``dump_case`` wrote.

    Raises:
        CaseError: ``file`` holds no case, or names a policy that does not exist.
    """
    try:
        case = _CASE.validate_json(file.read_bytes())
        parse_policy(case.policy)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = f"{file}: {place or 'the file'}: {first['msg']}, not {str(first['input'])[:80]!r}"
        raise CaseError(message) from error
    except PolicyError as error:
        message = f"{file}: {error}"
        raise CaseError(message) from error
    return case
