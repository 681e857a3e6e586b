"""A search as it stands on a trial's pod: the sampler, and the space that it draws from. Pure.

Anybody who may make pods may write one, so all that is read is bounded.
"""

import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from random import Random
from typing import Annotated, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationError,
    model_validator,
)

from controllers.core.errors import SearchError
from controllers.core.model import Parameters, Point, Value
from controllers.core.parameters import MOST_NAME, MOST_PARAMETERS, MOST_TEXT, bound_parameters

SHORT_NAMES: Final[Mapping[str, str]] = {"tpe": "TPESampler", "cmaes": "CmaEsSampler", "random": "RandomSampler"}
"""What people call the commonest samplers, beside the names of Optuna's own classes."""
MOST_WRITTEN: Final = 4096
"""Characters of a search: of an annotation no more are read."""
MOST_OPTIONS: Final = 64
MOST_SETTINGS: Final = 16
MOST_SETTING: Final = 10_000
"""The greatest number in a sampler's settings: most of them are counts of things that it makes."""
DIGITS: Final = 6
"""Significant digits of a number that is drawn: what people read is what ran."""
DIGITS_OF_STEPS: Final = 12
"""Of one that is some steps above a bound: fewer than a sum of floats is wrong by, more than anybody writes."""

Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MOST_NAME, pattern=r"^[A-Za-z_](?:[A-Za-z0-9_.-]{0,48}[A-Za-z0-9_])?$"),
]
Text = Annotated[str, StringConstraints(max_length=MOST_TEXT)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
_Bounded = Field(ge=-MOST_SETTING, le=MOST_SETTING)
Setting = bool | Annotated[int, _Bounded] | Annotated[float, _Bounded] | Text
Option = bool | int | Finite | Text


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Options(_Part):
    """One of ``options``."""

    options: tuple[Option, ...] = Field(min_length=1, max_length=MOST_OPTIONS)


class NumberRange(_Part):
    """A number from ``low`` to ``high``, both included; ``log`` spreads its logarithm evenly.

    With ``step`` it is a whole number of steps above ``low``, and so is ``high``.
    """

    low: Finite
    high: Finite
    log: bool = False
    whole: bool = False
    step: Finite | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if not self.low < self.high or (self.log and self.low <= 0):
            message = f"low must be below high, and above 0 where log is set, not {self.low:g} and {self.high:g}"
            raise ValueError(message)
        if self.whole and not (self.low.is_integer() and self.high.is_integer()):
            message = f"a range of whole numbers has whole bounds, not {self.low:g} and {self.high:g}"
            raise ValueError(message)
        if self.step is not None and (self.log or self.step > self.high - self.low):
            message = f"a step is at most as wide as the range, and not for a logarithm, unlike {self.step:g}"
            raise ValueError(message)
        if self.step is not None and self.whole and not self.step.is_integer():
            message = f"a range of whole numbers has a whole step, not {self.step:g}"
            raise ValueError(message)
        return self

    def tidy(self, number: float) -> float:
        """Return ``number`` as it is handed out: whole, on a step, or in six digits where these lie in the range."""
        if self.step is not None:
            number = self.low + round((number - self.low) / self.step) * self.step
        if self.whole:
            return round(number)
        if self.step is not None:
            return min(float(f"{number:.{DIGITS_OF_STEPS}g}"), self.high)
        short = float(f"{number:.{DIGITS}g}")
        return short if self.low <= short <= self.high else min(max(number, self.low), self.high)


def _kind(given: object) -> str:
    """Return which kind of domain ``given`` is meant to be, so that an error speaks of that one alone."""
    has_options = "options" in given if isinstance(given, dict) else isinstance(given, Options)
    return "options" if has_options else "range"


Domain = Annotated[Annotated[Options, Tag("options")] | Annotated[NumberRange, Tag("range")], Discriminator(_kind)]


class Condition(_Part):
    """Draw a hyperparameter only where an earlier one, ``name``, has one of ``values``; else it is ``otherwise``."""

    name: Name
    values: tuple[Option, ...] = Field(min_length=1, max_length=MOST_OPTIONS)
    otherwise: Option


class Dimension(_Part):
    """A hyperparameter: its name, where its values come from, and when it matters (None for always)."""

    name: Name
    domain: Domain
    when: Condition | None = None

    def by_chance(self, chance: Random) -> Value:
        """Return a value that any other is as likely as; the same state of ``chance`` gives the same one."""
        domain = self.domain
        if isinstance(domain, Options):
            return chance.choice(domain.options)
        low, high = (math.log(bound) if domain.log else bound for bound in (domain.low, domain.high))
        drawn = chance.uniform(low, high)
        return domain.tidy(math.exp(drawn) if domain.log else drawn)


class SearchSpec(_Part):
    """A sampler of Optuna by name with its settings, the seed, and the hyperparameters in the order of drawing."""

    sampler: Annotated[str, StringConstraints(min_length=1, max_length=MOST_NAME)]
    settings: Annotated[dict[Name, Setting], Field(max_length=MOST_SETTINGS)] = {}
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    space: tuple[Dimension, ...] = Field(min_length=1, max_length=MOST_PARAMETERS)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        known: set[str] = set()
        for dimension in self.space:
            if dimension.name in known:
                message = f"{dimension.name!r} is there twice"
                raise ValueError(message)
            if dimension.when is not None and dimension.when.name not in known:
                message = f"{dimension.name!r} depends on {dimension.when.name!r}, which does not come before it"
                raise ValueError(message)
            known.add(dimension.name)
        return self

    @property
    def kind(self) -> str:
        """The class of Optuna's that it names."""
        return SHORT_NAMES.get(self.sampler, self.sampler)

    def written(self) -> str:
        """Return the text that ``read_search`` reads."""
        given = self.model_dump(mode="json", exclude_defaults=True)
        # Argo takes two braces that close for the end of one of its tags.
        return json.dumps(given, separators=(",", ":")).replace("}}", "} }").replace("}}", "} }")

    def drawn(self, draw: Callable[[Dimension], Value]) -> Point:
        """Return a point; ``draw`` gives the value of a hyperparameter that matters."""
        values: dict[str, Value] = {}
        for dimension in self.space:
            when = dimension.when
            values[dimension.name] = draw(dimension) if when is None or matters(when, values) else when.otherwise
        return tuple(values.items())

    def by_chance(self, chance: Random) -> Point:
        """Return a point that any other is as likely as; the same state of ``chance`` gives the same one."""
        return self.drawn(lambda dimension: dimension.by_chance(chance))

    def that_matter(self, point: Point) -> dict[Dimension, Value]:
        """Return those values of ``point`` that were drawn, by hyperparameter."""
        values, drawn = dict(point), dict[Dimension, Value]()

        def take(dimension: Dimension) -> Value:
            drawn[dimension] = values[dimension.name]
            return values[dimension.name]

        self.drawn(take)
        return drawn

    def point_of(self, parameters: Parameters) -> Point | None:
        """Return the point that a trial with these ``parameters`` has; None where it is none of this space."""
        shown, values = dict(parameters), dict[str, Value]()
        for dimension in self.space:
            candidates: list[Value] = [] if dimension.when is None else [dimension.when.otherwise]
            number = shown.get(dimension.name)
            if isinstance(dimension.domain, Options):
                candidates += dimension.domain.options
            elif isinstance(number, float) and dimension.domain.low <= number <= dimension.domain.high:
                candidates.insert(0, dimension.domain.tidy(number))
            match = [
                candidate
                for candidate in candidates
                if dict(bound_parameters({dimension.name: candidate})).get(dimension.name) == number
            ]
            if number is None or not match:
                return None
            values[dimension.name] = match[0]
        return tuple(values.items())


def matters(when: Condition, values: Mapping[str, Value]) -> bool:
    """Return whether a hyperparameter matters beside the ``values`` of earlier ones; not where that one is missing."""
    given = values.get(when.name)
    # 1 and True are equal, and yet different options.
    return any(type(value) is type(given) and value == given for value in when.values)


@lru_cache(maxsize=256)
def read_search(text: str) -> SearchSpec:
    """Return the search that ``text`` describes.

    Raises:
        SearchError: It is none.
    """
    if len(text) > MOST_WRITTEN:
        message = f"a search is written in at most {MOST_WRITTEN} characters, not {len(text)}"
        raise SearchError(message)
    try:
        return SearchSpec.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"cannot read a search: {where or 'it'}: {first['msg']}: {str(first['input'])[:80]!r}"
        raise SearchError(message) from None
