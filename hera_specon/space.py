"""The search space: values that a hyperparameter may take."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Final

from controllers.search.spec import DIGITS_OF_STEPS
from hera_specon.errors import SpaceError
from hera_specon.settings import check_hyperparameter, input_name, is_finite, is_whole

Value = str | int | float | bool
"""A hyperparameter's value; each survives a command line, JSON and Argo's substitution unchanged."""
Point = dict[str, Value]
"""One trial's hyperparameters."""

_UNSAFE: Final = ('"', "'", "\\", "{{", "}}")
_DIGITS: Final = 6
_MOST_WHOLE: Final = 2**63 - 1
_MOST_STEPS: Final = 1_000_000
_LONGEST_SHOWN: Final = 120


class Distribution(ABC):
    """Where the values of one hyperparameter come from."""

    __slots__ = ()

    @abstractmethod
    def draw(self, chance: Random) -> Value:
        """Return one value; the same state of ``chance`` gives the same value."""

    @abstractmethod
    def values(self) -> Sequence[Value] | None:
        """Return every value in order, or None where there is no end of them."""


Space = Mapping[str, Distribution]
"""Hyperparameters by name."""


@dataclass(frozen=True, slots=True)
class Choice(Distribution):
    """One of ``options``, each as likely as another."""

    options: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.options:
            problem = "choice() needs at least one value"
            raise SpaceError(problem)
        for option in self.options:
            _check_option(option)
            if self.options.count(option) > 1:
                problem = f"choice{self.options} holds {option!r} more than once"
                raise SpaceError(problem)

    def draw(self, chance: Random) -> Value:
        """Return one of the options."""
        return chance.choice(self.options)

    def values(self) -> tuple[Value, ...]:
        """Return the options as they were given."""
        return self.options


@dataclass(frozen=True, slots=True)
class Continuous(Distribution):
    """A number between ``low`` and ``high``, evenly spread, or its logarithm where ``log``.

    Values have six significant digits where the range allows it: what people read is what ran. With ``step`` they are
    ``low``, ``low + step`` and so on, up to ``high`` where it is one of them.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        _check_range(self, is_finite)
        if not math.isfinite(float(self.high) - float(self.low)):
            problem = f"{self}: the range is wider than the greatest number that a program can hold, 1.8e308"
            raise SpaceError(problem)
        if self.step is not None and self.steps > _MOST_STEPS:
            problem = f"{self}: step={self.step!r} cuts the range into more than {_MOST_STEPS} parts; leave it out"
            raise SpaceError(problem)

    @property
    def steps(self) -> int:
        """How many steps lie between the least value and the greatest; 0 without a step."""
        # Of 0.3 / 0.1 a float makes a little less than 3.
        return 0 if self.step is None else math.floor((self.high - self.low) / self.step * (1 + 1e-12))

    @property
    def last(self) -> float:
        """The greatest value."""
        return self.high if self.step is None else self._at(self.steps)

    def draw(self, chance: Random) -> float:
        """Return a number in the range."""
        if self.step is not None:
            return self._at(chance.randint(0, self.steps))
        if self.log:
            value = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = chance.uniform(self.low, self.high)
        short = float(f"{value:.{_DIGITS}g}")
        return short if self.low <= short <= self.high else min(max(value, float(self.low)), float(self.high))

    def values(self) -> tuple[float, ...] | None:
        """Return the numbers that are whole steps above the lowest; None without a step, since they have no end."""
        return None if self.step is None else tuple(map(self._at, range(self.steps + 1)))

    def _at(self, number: int) -> float:
        """Return the value ``number`` steps above the lowest."""
        value = self.low + number * (self.step or 0.0)
        return min(float(f"{value:.{DIGITS_OF_STEPS}g}"), float(self.high))


@dataclass(frozen=True, slots=True)
class Integer(Distribution):
    """A whole number from ``low`` to ``high``, evenly spread, or its logarithm where ``log``.

    Both ends are included, ``high`` where it is a whole number of ``step`` above ``low``.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        _check_range(self, is_whole)
        if max(abs(self.low), abs(self.high)) > _MOST_WHOLE:
            problem = f"integer(): bounds lie from {-_MOST_WHOLE} to {_MOST_WHOLE}, unlike {_brief(self)}"
            raise SpaceError(problem)

    @property
    def last(self) -> int:
        """The greatest value."""
        return self.low + (self.high - self.low) // self.step * self.step

    def draw(self, chance: Random) -> int:
        """Return a whole number in the range."""
        if not self.log:
            return self.low + self.step * chance.randint(0, (self.high - self.low) // self.step)
        value = math.floor(math.exp(chance.uniform(math.log(self.low), math.log(self.high + 1))))
        return min(max(value, self.low), self.high)

    def values(self) -> Sequence[int]:
        """Return every whole number in the range."""
        return range(self.low, self.high + 1, self.step)


@dataclass(frozen=True, slots=True)
class Conditional(Distribution):
    """A hyperparameter that matters only where ``name``, an earlier one, has one of ``values``; else ``otherwise``."""

    name: str
    needed: tuple[Value, ...]
    within: Distribution
    otherwise: Value

    def __post_init__(self) -> None:
        if isinstance(self.within, Conditional) or not isinstance(self.within, Distribution):
            problem = f"when() takes choice(), uniform() and the like, not {self.within!r}"
            raise SpaceError(problem)
        for value in (*self.needed, self.otherwise):
            _check_option(value)
        if not self.needed:
            problem = f"when({self.name!r}, ...) names no value at which the hyperparameter matters"
            raise SpaceError(problem)

    def draw(self, chance: Random) -> Value:
        """Return a value for where it matters."""
        return self.within.draw(chance)

    def values(self) -> Sequence[Value] | None:
        """Return the values for where it matters."""
        return self.within.values()

    def holds(self, point: Point) -> bool:
        """Return whether it matters in ``point``."""
        return point[self.name] in self.needed


def choice(*options: Value) -> Choice:
    """Return a hyperparameter that takes one of ``options``.

    Raises:
        SpaceError: There are none, one comes twice, or one is no string, number or truth value that every
            place it passes through leaves as it is.
    """
    return Choice(options)


def uniform(low: float, high: float, *, step: float | None = None) -> Continuous:
    """Return a hyperparameter that is a number between ``low`` and ``high``.

    With ``step`` it is ``low``, ``low + step`` and so on: ``uniform(0, 0.5, step=0.1)``.

    Raises:
        SpaceError: ``low`` is not below ``high``, one is not finite, or no step fits between them.
    """
    return Continuous(low, high, step=step)


def log_uniform(low: float, high: float) -> Continuous:
    """Return a hyperparameter whose logarithm is evenly spread: learning rates, regularisation.

    Raises:
        SpaceError: ``low`` is not above 0 or not below ``high``, or one is not finite.
    """
    return Continuous(low, high, log=True)


def integer(low: int, high: int, *, log: bool = False, step: int = 1) -> Integer:
    """Return a hyperparameter that is a whole number from ``low`` to ``high``, both included.

    With ``step`` it is ``low``, ``low + step`` and so on: ``integer(32, 256, step=32)``.

    Raises:
        SpaceError: ``low`` is not below ``high``, one is no whole number of 64 bits, no step fits between them, or
            ``log`` with ``low`` below 1 or with a ``step``.
    """
    return Integer(low, high, log, step)


def when(name: str, needed: Value | Sequence[Value], hyperparameter: Distribution, *, otherwise: Value) -> Conditional:
    """Return a hyperparameter that matters only where another one has a certain value.

    ``when("optimizer", "sgd", uniform(0.5, 0.99), otherwise=0.0)`` is a momentum for SGD; other trials get 0.0, and a
    search that asks as it goes learns nothing from it there.

    Args:
        name: The other hyperparameter, which comes before this one in the space.
        needed: The value that it has to have, or several.
        hyperparameter: ``choice()``, ``uniform()`` and the like.
        otherwise: What a trial gets where it does not matter.

    Raises:
        SpaceError: A value is none that a hyperparameter can have.
    """
    several = tuple(needed) if isinstance(needed, list | tuple) else (needed,)
    return Conditional(name, several, hyperparameter, otherwise)


def check_space(space: object) -> Space:
    """Return ``space``.

    Raises:
        SpaceError: It is empty, or something in it is no hyperparameter.
    """
    if not isinstance(space, Mapping) or not space:
        problem = f"space= maps at least one hyperparameter to its values, not {space!r}"
        raise SpaceError(problem)
    for name, distribution in space.items():
        check_hyperparameter(name)
        if not isinstance(distribution, Distribution):
            problem = f"hyperparameter {name!r} is {distribution!r}; use choice(), uniform() and the like"
            raise SpaceError(problem)
    for first, second in combinations(space, 2):
        if input_name(first) == input_name(second):
            problem = f"{first!r} and {second!r} are too alike: both would be {input_name(first)!r} in Argo"
            raise SpaceError(problem)
    names = list(space)
    for number, (name, distribution) in enumerate(space.items()):
        if not isinstance(distribution, Conditional):
            continue
        if distribution.name not in names[:number]:
            problem = f"{name!r} depends on {distribution.name!r}, which does not come before it in the space"
            raise SpaceError(problem)
        possible = space[distribution.name].values()
        never = [value for value in distribution.needed if possible is not None and value not in possible]
        if never and not isinstance(space[distribution.name], Conditional):
            problem = f"{name!r} depends on {distribution.name!r} being {never[0]!r}, which it never is"
            raise SpaceError(problem)
    return space


def value_text(value: Value) -> str:
    """Return ``value`` as it stands on a command line: JSON, strings without quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _check_option(option: object) -> None:
    if not isinstance(option, str | int | float):
        hint = "; write a list as text, such as '64 64', and let flags= pass its words one by one"
        listed = hint if isinstance(option, list | tuple) else ""
        problem = f"choice() takes strings, numbers and truth values one by one, not {option!r}{listed}"
        raise SpaceError(problem)
    if not isinstance(option, str | bool) and not is_finite(option):
        problem = f"choice() takes finite numbers up to 1.8e308, not {_brief(option)}"
        raise SpaceError(problem)
    if isinstance(option, str) and (not option.isprintable() or any(mark in option for mark in _UNSAFE)):
        problem = f"choice() takes no string with quotes, backslashes, braces or control marks: {option!r}"
        raise SpaceError(problem)


def _check_range(distribution: Continuous | Integer, is_number: Callable[[object], bool]) -> None:
    low, high, step = distribution.low, distribution.high, distribution.step
    shown = _brief(distribution)
    for bound in (low, high):
        if not is_number(bound):
            problem = f"{shown}: {_brief(bound)} is no bound of such a range"
            raise SpaceError(problem)
    if low >= high:
        problem = f"{shown}: low must be below high"
        raise SpaceError(problem)
    if distribution.log and low <= 0:
        problem = f"{shown}: a logarithmic range starts above 0"
        raise SpaceError(problem)
    if step is not None and (not is_number(step) or not 0 < step <= high - low):
        problem = f"{shown}: step= is above 0 and at most high - low, not {_brief(step)}"
        raise SpaceError(problem)
    if distribution.log and step not in {None, 1}:
        problem = f"{shown}: a logarithmic range has no step="
        raise SpaceError(problem)


def _brief(given: object) -> str:
    """Return how ``given`` was written, without the middle of what is very long."""
    try:
        text = repr(given)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = f"{type(given).__name__} of thousands of digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
