"""The search space: values that a hyperparameter may take, and the points that become trials."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from random import Random
from typing import Final, Literal

from hera_specon.errors import SpaceError, SweepError
from hera_specon.settings import check_hyperparameter, input_name, is_finite, is_whole

Value = str | int | float | bool
"""A hyperparameter's value; each survives a command line, JSON and Argo's substitution unchanged."""

_UNSAFE: Final = ('"', "'", "\\", "{{", "}}")
_DIGITS: Final = 6


class Distribution(ABC):
    """Where the values of one hyperparameter come from."""

    __slots__ = ()

    @abstractmethod
    def draw(self, chance: Random) -> Value:
        """Return one value; the same state of ``chance`` gives the same value."""

    @abstractmethod
    def values(self) -> tuple[Value, ...] | None:
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

    Values have six significant digits where the range allows it: what people read is what ran.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_range(self, is_finite)

    def draw(self, chance: Random) -> float:
        """Return a number in the range."""
        if self.log:
            value = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = chance.uniform(self.low, self.high)
        short = float(f"{value:.{_DIGITS}g}")
        return short if self.low <= short <= self.high else min(max(value, float(self.low)), float(self.high))

    def values(self) -> None:
        """Return None: the range has no end of values."""


@dataclass(frozen=True, slots=True)
class Integer(Distribution):
    """A whole number from ``low`` to ``high``, both included, evenly spread, or its logarithm where ``log``."""

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        _check_range(self, is_whole)

    def draw(self, chance: Random) -> int:
        """Return a whole number in the range."""
        if not self.log:
            return chance.randint(self.low, self.high)
        value = math.floor(math.exp(chance.uniform(math.log(self.low), math.log(self.high + 1))))
        return min(max(value, self.low), self.high)

    def values(self) -> tuple[int, ...]:
        """Return every whole number in the range."""
        return tuple(range(self.low, self.high + 1))


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

    def values(self) -> tuple[Value, ...] | None:
        """Return the values for where it matters."""
        return self.within.values()

    def holds(self, point: "Point") -> bool:
        """Return whether it matters in ``point``."""
        return point[self.name] in self.needed


def choice(*options: Value) -> Choice:
    """Return a hyperparameter that takes one of ``options``.

    Raises:
        SpaceError: There are none, one comes twice, or one is no string, number or truth value that every
            place it passes through leaves as it is.
    """
    return Choice(options)


def uniform(low: float, high: float) -> Continuous:
    """Return a hyperparameter that is a number between ``low`` and ``high``.

    Raises:
        SpaceError: ``low`` is not below ``high``, or one is not finite.
    """
    return Continuous(low, high)


def log_uniform(low: float, high: float) -> Continuous:
    """Return a hyperparameter whose logarithm is evenly spread: learning rates, regularisation.

    Raises:
        SpaceError: ``low`` is not above 0 or not below ``high``, or one is not finite.
    """
    return Continuous(low, high, log=True)


def integer(low: int, high: int, *, log: bool = False) -> Integer:
    """Return a hyperparameter that is a whole number from ``low`` to ``high``, both included.

    Raises:
        SpaceError: ``low`` is not below ``high``, one is no whole number, or ``log`` with ``low`` below 1.
    """
    return Integer(low, high, log)


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
        problem = f"choice() takes strings, numbers and truth values one by one, not {option!r}"
        raise SpaceError(problem)
    if isinstance(option, float) and not math.isfinite(option):
        problem = f"choice() takes finite numbers, not {option!r}"
        raise SpaceError(problem)
    if isinstance(option, str) and (not option.isprintable() or any(mark in option for mark in _UNSAFE)):
        problem = f"choice() takes no string with quotes, backslashes, braces or control marks: {option!r}"
        raise SpaceError(problem)


def _check_range(distribution: Continuous | Integer, is_bound: Callable[[object], bool]) -> None:
    low, high = distribution.low, distribution.high
    for bound in (low, high):
        if not is_bound(bound):
            problem = f"{distribution}: {bound!r} is no bound of such a range"
            raise SpaceError(problem)
    if low >= high:
        problem = f"{distribution}: low must be below high"
        raise SpaceError(problem)
    if distribution.log and low <= 0:
        problem = f"{distribution}: a logarithmic range starts above 0"
        raise SpaceError(problem)


Point = dict[str, Value]
"""One trial's hyperparameters."""
Search = Literal["random", "grid"]
"""Searches whose points are known beforehand, so that they need no controller."""
MOST_POINTS: Final = 1_000_000


def points(space: Space, search: str, trials: int | None, seed: int) -> tuple[Point, ...]:
    """Return the points to try, in the order in which they are numbered.

    Args:
        space: Hyperparameters by name.
        search: ``random`` draws ``trials`` points; a point may come again. ``grid`` takes every combination,
            the last hyperparameter changing fastest.
        trials: How many points; for a grid, the most there may be.
        seed: The same seed draws the same values for a hyperparameter, whatever others there are.

    Raises:
        SpaceError: A grid over a range without end, or of more points than ``trials``.
        SweepError: ``trials`` is not positive or missing, or ``search`` or ``seed`` is unknown.
    """
    check_space(space)
    check_amounts(trials, seed)
    if search == "grid":
        return _grid(space, trials)
    if search == "random":
        return _drawn(space, trials, seed)
    problem = f"search= is 'random', 'grid', tpe(), cmaes() or sampler(...), not {search!r}"
    raise SweepError(problem)


def check_amounts(trials: int | None, seed: int) -> None:
    """Check the number of trials and the seed.

    Raises:
        SweepError: One of them makes no sense.
    """
    if trials is not None and (not is_whole(trials) or trials <= 0):
        problem = f"trials= is a whole number above 0, not {trials!r}"
        raise SweepError(problem)
    if not is_whole(seed):
        problem = f"seed= is a whole number, not {seed!r}"
        raise SweepError(problem)


def _drawn(space: Space, trials: int | None, seed: int) -> tuple[Point, ...]:
    if trials is None:
        problem = "search='random' needs trials=, the number of points to draw"
        raise SweepError(problem)
    # One stream per hyperparameter: neither order nor the other names change what is drawn.
    chances = {name: Random(f"{seed}:{name}") for name in space}  # noqa: S311 - repeatable, guards no secret
    drawn = ({name: space[name].draw(chances[name]) for name in space} for _ in range(trials))
    return tuple(_settled(space, point) for point in drawn)


def _settled(space: Space, point: Point) -> Point:
    """Return ``point`` with what a hyperparameter is where it does not matter."""
    for name, distribution in space.items():
        if isinstance(distribution, Conditional) and not distribution.holds(point):
            point[name] = distribution.otherwise
    return point


def _grid(space: Space, trials: int | None) -> tuple[Point, ...]:
    axes: list[Sequence[Value]] = []
    for name, distribution in space.items():
        values = distribution.values()
        if values is None:
            problem = f"a grid needs finitely many values, and {name!r} is {distribution}; use choice() or integer()"
            raise SpaceError(problem)
        axes.append(values)
    size = prod(map(len, axes))
    if size > MOST_POINTS:
        problem = f"the grid has {size} points, more than the {MOST_POINTS} that a sweep may have"
        raise SpaceError(problem)
    found = [_settled(space, dict(zip(space, values, strict=True))) for values in product(*axes)]
    # Where a hyperparameter does not matter, all its values make the same trial.
    different = tuple({json.dumps(point): point for point in found}.values())
    if trials is not None and len(different) > trials:
        problem = f"the grid has {len(different)} points, more than trials={trials}"
        raise SpaceError(problem)
    return different
