"""What every policy is made from: settings that are frozen, checked when written, and able to describe themselves."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from controllers.core.actions import Action, Clone, Migrate, Place, Resize, Stop, Suspend
from controllers.core.errors import SpeconError
from controllers.core.progress import Normalise

_OWN_RULE: Final = "value_error"
"""Pydantic's name for what a policy's own check found,"""
_OWN_RULES_WORDS: Final = "Value error, "
"""and what it puts before its words."""

MinChange = Annotated[
    float, Field(ge=0, lt=1, description="least change of a request that is worth making, as a share of it")
]
MinCpu = Annotated[float, Field(gt=0, description="least request of a worker in cores, so that it never stops")]
StaleAfter = Annotated[
    float, Field(ge=1, description="age in intervals beyond which a report decides nothing: it came late")
]
DEFAULT_POLICY: Final = "ahead"
"""What steers a sweep whose author and whose runner name no policy."""
RULE_OF: Final[Mapping[type[Action], tuple[str, str]]] = {
    Place: ("placement", "the default scheduler's"),
    Resize: ("shares", "as requested"),
    Migrate: ("moves", "none"),
    Suspend: ("suspensions", "none"),
    Stop: ("stops", "none"),
    Clone: ("clones", "none"),
}
"""For each kind of action the rule that a policy takes it by, and what happens under a policy without that rule."""


class PolicyError(SpeconError):
    """What was written does not give a policy: base of the two errors below."""


class PolicyParameterError(PolicyError):
    """A parameter of a policy is unknown, missing its value, or out of bounds."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """When a trial slows: below which gain, how gains are measured, and the age (seconds) of a report that counts."""

    alpha: float
    normalise: Normalise
    stale_after: float


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One parameter of a policy. ``constraint`` completes the sentence "must be ..."."""

    name: str
    default: Any
    description: str
    constraint: str

    @property
    def written_default(self) -> str:
        """The default as it is written after ``--policy``."""
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)


class PolicySettings(BaseModel):
    """Base of the policies.

    A policy is made of at most six rules, one for each kind of action: where trials start (``Place``), what share
    each gets (``Resize``), which of them go elsewhere (``Migrate``), which wait (``Suspend``), which end early
    (``Stop``) and which go on from another's checkpoint (``Clone``). Each says in words what its rules go by.
    ``goal`` is the setting of a sweep without which it has nothing to go by, empty where there is none.
    ``one_objective`` is why it takes no sweep of several objectives, empty where it goes by the first of them.
    ``state_type`` is the frozen dataclass of its state; all defaults, it is the state before the first decision.

    ``most_moves`` is how many moves and suspensions of one trial the policy brings about at most, None where there is
    no limit. Only moves that arrive count: a move that failed may be asked for again.

    Forecasts go by two more: ``shortest_first`` says that the trial with the least left to do has a node first,
    ``scales_gangs`` that gangs get more or fewer workers while they train.

    Raises:
        PolicyParameterError: a parameter is unknown or out of bounds; the message carries its value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    state_type: ClassVar[type[Any]]
    needs: ClassVar[frozenset[type[Action]]]
    placement: ClassVar[str] = ""
    shares: ClassVar[str] = ""
    moves: ClassVar[str] = ""
    suspensions: ClassVar[str] = ""
    stops: ClassVar[str] = ""
    clones: ClassVar[str] = ""
    goal: ClassVar[str] = ""
    one_objective: ClassVar[str] = ""
    most_moves: ClassVar[int | None] = 0
    shortest_first: ClassVar[bool] = False
    scales_gangs: ClassVar[bool] = False

    def __init__(self, **parameters: Any) -> None:  # noqa: ANN401 - pydantic checks them
        try:
            super().__init__(**parameters)
        except ValidationError as error:
            problems = "; ".join(self._problem(detail) for detail in error.errors())
            message = f"{self.name}: {problems}"
            raise PolicyParameterError(message) from None

    def initial(self) -> Any:  # noqa: ANN401 - each policy has its own state
        """Return the state before the first decision."""
        return self.state_type()

    @classmethod
    def rules(cls) -> dict[str, str]:
        """Return what the policy is made of; where it has no rule of its own, who decides instead."""
        return {rule: getattr(cls, rule) or without for rule, without in RULE_OF.values()}

    @classmethod
    def parameters(cls) -> tuple[ParameterInfo, ...]:
        """Return what can be set, in the order of the documentation; not what only a world tells a policy."""
        return parameters_of(cls)

    @classmethod
    def _problem(cls, detail: ErrorDetails) -> str:
        name = str(detail["loc"][0])
        settable = [parameter.name for parameter in cls.parameters()]
        if name not in settable:
            return f"no parameter {name!r}{suggestion(name, settable)}"
        if detail["type"] == _OWN_RULE:
            return detail["msg"].removeprefix(_OWN_RULES_WORDS)
        return f"{name} must be {constraint(cls.model_fields[name])}, got {detail['input']}"


@dataclass(frozen=True, slots=True)
class NoState:
    """Nothing to remember."""


class Stateless(PolicySettings):
    """Base of policies that look at the snapshot alone."""

    state_type: ClassVar[type[NoState]] = NoState


def parameters_of(model: type[BaseModel]) -> tuple[ParameterInfo, ...]:
    """Return the fields of ``model`` that can be set, in their order."""
    return tuple(
        ParameterInfo(name, field.default, field.description or "", constraint(field))
        for name, field in model.model_fields.items()
        if not field.exclude
    )


def suggestion(given: str, valid: Iterable[str]) -> str:
    """Return the end of an error message: the nearest valid name, and all of them."""
    names = sorted(valid)
    close = difflib.get_close_matches(given, names, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{meant} valid: {', '.join(names) or 'none'}"


def constraint(field: FieldInfo) -> str:
    """Return in words what the values of ``field`` may be."""
    kinds = (field.annotation, *get_args(field.annotation))  # of one that may be None, what it is otherwise
    if (named := next((kind for kind in kinds if get_origin(kind) is Literal), None)) is not None:
        return "one of " + ", ".join(map(str, get_args(named)))
    if field.annotation is bool:
        return "true or false"
    low, high = "(-inf", "inf)"
    for bound in field.metadata:
        match bound:
            case Gt(gt=value):
                low = f"({value}"
            case Ge(ge=value):
                low = f"[{value}"
            case Lt(lt=value):
                high = f"{value})"
            case Le(le=value):
                high = f"{value}]"
            case _:
                continue
    return f"a number in {low}, {high}" if (low, high) != ("(-inf", "inf)") else "a number"
