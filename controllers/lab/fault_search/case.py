"""One faulty run as data: a policy, a scenario and what goes wrong; kept as JSON, so that it can be run again."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from controllers.core.errors import SpeconError
from controllers.lab.fault_search.controller_faults import CONTROLLER_FAULTS, ControllerFault
from controllers.policies.kit.settings import PolicyError
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.faults import WorldFault
from controllers.worlds.simulated.scenario import Scenario


class CaseError(SpeconError):
    """A file holds no case; the message names the file, the place in it and the offending value."""


@dataclass(frozen=True)
class Case:
    """All that a faulty run depends on.

    ``policy`` is as people type it. ``journal_every_s`` is how seldom the controller keeps a state that is not urgent.
    """

    policy: str
    scenario: Scenario
    faults: tuple[WorldFault | ControllerFault, ...] = ()
    journal_every_s: float = 0.0

    @property
    def world_faults(self) -> tuple[WorldFault, ...]:
        """What befalls the cluster."""
        return tuple(fault for fault in self.faults if not isinstance(fault, CONTROLLER_FAULTS))

    @property
    def controller_faults(self) -> tuple[ControllerFault, ...]:
        """What befalls the controller."""
        return tuple(fault for fault in self.faults if isinstance(fault, CONTROLLER_FAULTS))

    @property
    def size(self) -> str:
        """How much there is of what, in words."""
        workload = self.scenario.workload
        return f"{len(workload.trials)} trials, {len(workload.nodes)} nodes, {len(self.faults)} faults"


_CASE = TypeAdapter(Case)


def dump_case(case: Case) -> str:
    """Return ``case`` as JSON; NaN and infinities are strings in it."""
    return json.dumps(to_jsonable_python(case, inf_nan_mode="strings"), indent=1) + "\n"


def load_case(file: Path) -> Case:
    """Read back what ``dump_case`` wrote.

    Raises:
        CaseError: ``file`` holds no case, or one of a policy that there is none of.
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
