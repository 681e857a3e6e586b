"""Settings of a policy: frozen, checked when written, and able to describe themselves."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from controllers.core.errors import SpeconError
from controllers.core.model import Action

MinChange = Annotated[
    float, Field(ge=0, lt=1, description="least change of a request that is worth making, as a share of it")
]
MinCpu = Annotated[float, Field(gt=0, description="least request of a worker in cores, so that it never stops")]
StaleAfter = Annotated[
    float, Field(ge=1, description="age in intervals beyond which a report decides nothing: it came late")
]


class PolicyParameterError(SpeconError, ValueError):
    """A parameter of a policy is unknown, missing its value, or out of bounds."""


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One parameter of a policy. ``constraint`` completes the sentence "must be ..."."""

    name: str
    default: Any
    description: str
    constraint: str


class PolicySettings(BaseModel):
    """Base of the policies.

    A policy is made of at most three rules, one for each kind of action: where trials start (``Place``), what share
    each gets (``Resize``), and which of them go elsewhere (``Migrate``). Each says in words what its rules go by.
    ``goal`` is the setting of a sweep without which it has nothing to go by, empty where there is none.

    Raises:
        PolicyParameterError: a parameter is unknown or out of bounds; the message carries its value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[frozenset[type[Action]]]
    placement: ClassVar[str] = ""
    shares: ClassVar[str] = ""
    moves: ClassVar[str] = ""
    goal: ClassVar[str] = ""

    def __init__(self, **parameters: Any) -> None:  # noqa: ANN401 - pydantic checks them
        try:
            super().__init__(**parameters)
        except ValidationError as error:
            problems = "; ".join(self._problem(detail) for detail in error.errors())
            message = f"{self.name}: {problems}"
            raise PolicyParameterError(message) from None

    @classmethod
    def rules(cls) -> dict[str, str]:
        """Return what the policy is made of; where it has no rule of its own, who decides instead."""
        return {
            "placement": cls.placement or "the default scheduler's",
            "shares": cls.shares or "as requested",
            "moves": cls.moves or "none",
        }

    @classmethod
    def parameters(cls) -> tuple[ParameterInfo, ...]:
        """Return what can be set, in the order of the documentation; not what only a world tells a policy."""
        return tuple(
            ParameterInfo(name, field.default, field.description or "", constraint(field))
            for name, field in cls.model_fields.items()
            if not field.exclude
        )

    @classmethod
    def _problem(cls, detail: ErrorDetails) -> str:
        name = str(detail["loc"][0])
        settable = [parameter.name for parameter in cls.parameters()]
        if name not in settable:
            return f"no parameter {name!r}{suggestion(name, settable)}"
        return f"{name} must be {constraint(cls.model_fields[name])}, got {detail['input']}"


def suggestion(given: str, valid: Iterable[str]) -> str:
    """Return the end of an error message: the nearest valid name, and all of them."""
    names = sorted(valid)
    close = difflib.get_close_matches(given, names, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{meant} valid: {', '.join(names) or 'none'}"


def constraint(field: FieldInfo) -> str:
    """Return in words what the values of ``field`` may be."""
    if get_origin(field.annotation) is Literal:
        return "one of " + ", ".join(map(str, get_args(field.annotation)))
    if field.annotation is bool:
        return "true or false"
    return f"a number{_interval(field.metadata)}"


def _interval(bounds: Iterable[object]) -> str:
    low, high = "(-inf", "inf)"
    for bound in bounds:
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
    return f" in {low}, {high}" if (low, high) != ("(-inf", "inf)") else ""
