"""When a sweep ends before all of its trials have: the rules that its author gave, and the words that tell of it. Pure.

A sweep ends by the first of its rules that holds. What runs then is stopped, and what waits never starts. The reasons
of its trials tell later that the whole sweep was ended, and not a trial alone.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_serializer

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.core.promises import kept_in

MOST_S: Final = 366 * 24 * 3600.0
MOST_TRIALS: Final = 100_000
MOST_CPU_HOURS: Final = 1e9
ENDED: Final = "sweep ended: "
"""Begins the reason of each trial that was stopped because its whole sweep was."""
_HOUR_S: Final = 3600.0
_MINUTE_S: Final = 60.0


class StopRuleError(SpeconError):
    """A rule makes no sense, or a sweep is given two of one kind."""


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Plateau(_Rule):
    """The last ``trials`` that ended have improved the best value by less than ``by``, in the objective's own unit."""

    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS)]
    by: Annotated[float, Field(gt=0)]


class Terminator(_Rule):
    """What Optuna's terminator goes by.

    Without ``regret``, the best value has stood for more than ``trials`` trials. With it, a model of the trials says
    that the best value is less than ``regret``, in the objective's own unit, from the best that there is; it is asked
    once ``trials`` have come to a value.
    """

    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS)]
    regret: Annotated[float, Field(gt=0)] | None = None


class StopRules(_Rule):
    """The rules of a sweep, None for each that it does not have.

    ``value`` is what the objective is to reach, ``after_s`` the seconds since the first trial started, ``cpu_hours``
    the hours of CPU that all trials may use together. ``terminator`` is for sweeps with a search.
    """

    value: float | None = None
    plateau: Plateau | None = None
    terminator: Terminator | None = None
    after_s: Annotated[float, Field(gt=0, le=MOST_S)] | None = None
    cpu_hours: Annotated[float, Field(gt=0, le=MOST_CPU_HOURS)] | None = None

    def __bool__(self) -> bool:
        return bool(self._given)

    def __or__(self, other: "StopRules") -> "StopRules":
        """Return the rules of both; any of them ends the sweep.

        Raises:
            StopRuleError: both have one of the same kind.
        """
        if not isinstance(other, StopRules):
            return NotImplemented
        if twice := sorted(self._given.keys() & other._given.keys()):
            message = f"a sweep has one rule of a kind, and {_CALLED[twice[0]]}() is given twice"
            raise StopRuleError(message)
        return StopRules(**self._given, **other._given)

    def without_models(self) -> "StopRules":
        """Return the rules but for a terminator that fits models."""
        fits = self.terminator is not None and self.terminator.regret is not None
        return self.model_copy(update={"terminator": None}) if fits else self

    @property
    def _given(self) -> dict[str, Any]:
        """Each rule that there is, by its name."""
        return {name: rule for name in _CALLED if (rule := getattr(self, name)) is not None}

    @model_serializer
    def _only_given(self) -> dict[str, Any]:
        return self._given


_CALLED: Final = {
    "value": "value",
    "plateau": "plateau",
    "terminator": "terminator",
    "after_s": "after",
    "cpu_hours": "budget",
}
"""What an author calls each rule."""
NO_RULES: Final = StopRules()


def rules_of(**given: object) -> StopRules:
    """Return the rules that are ``given`` by their names.

    Raises:
        StopRuleError: one is out of its bounds; the message names it and its value.
    """
    try:
        return StopRules.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        names = [str(part) for part in first["loc"]]
        rule = _CALLED.get(names[0], names[0]) if names else "stop"
        message = f"{rule}(): {first['msg'][:1].lower()}{first['msg'][1:]}, not {first['input']!r:.80}"
        raise StopRuleError(message) from error


def rules_in(notes: Mapping[str, str]) -> StopRules:
    """Return what the annotations of a trial's template say; what makes no sense counts as if it was not there."""
    written = notes.get(labels.ANNOTATION_END_WHEN, "")
    try:
        return StopRules.model_validate_json(written) if written else NO_RULES
    except ValidationError:
        return NO_RULES


def rules_notes(rules: StopRules) -> dict[str, str]:
    """Return the annotations that ``rules_in`` reads."""
    return {labels.ANNOTATION_END_WHEN: rules.model_dump_json()} if rules else {}


def duration_told(seconds: float) -> str:
    """Return a duration in the largest unit that it has one of."""
    for unit, name in ((_HOUR_S, "h"), (_MINUTE_S, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.4g} {name}"
    return f"{seconds:.4g} s"


def why_ended(stopped: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return by sweep why it was ended.

    Args:
        stopped: the sweep of each trial, and why that was stopped, empty where it was not.
    """
    whys: dict[str, str] = {}
    for sweep, why in stopped:
        if why.startswith(ENDED):
            whys.setdefault(sweep, why.removeprefix(ENDED))
        elif (kept := kept_in(why)) is not None:
            whys.setdefault(sweep, kept.words())
    return whys
