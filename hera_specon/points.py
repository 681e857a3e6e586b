"""The points of a search space that become trials, where they are known before any has run."""

import json
from collections.abc import Sequence
from itertools import product
from math import prod
from random import Random
from typing import Final, Literal

from hera_specon.errors import SpaceError, SweepError
from hera_specon.settings import is_whole
from hera_specon.space import Conditional, Point, Space, Value, check_space

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
        return _draw(space, trials, seed)
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


def _draw(space: Space, trials: int | None, seed: int) -> tuple[Point, ...]:
    if trials is None:
        problem = "search='random' needs trials=, the number of points to draw"
        raise SweepError(problem)
    # One stream per hyperparameter: neither order nor the other names change what is drawn.
    chances = {name: Random(f"{seed}:{name}") for name in space}  # noqa: S311 - repeatable, guards no secret
    drawn = ({name: space[name].draw(chances[name]) for name in space} for _ in range(trials))
    return tuple(_settle(space, point) for point in drawn)


def grid_size(space: Space) -> int | None:
    """Return how many combinations ``space`` has, None where there is no end of them."""
    axes = [distribution.values() for distribution in space.values()]
    finite = [values for values in axes if values is not None]
    return prod(map(_count, finite)) if len(finite) == len(axes) else None


def _count(values: Sequence[Value]) -> int:
    """Return how many ``values`` there are; ``len`` cannot count those of the widest ranges."""
    return len(values) if not isinstance(values, range) else (values.stop - values.start - 1) // values.step + 1


def _settle(space: Space, point: Point) -> Point:
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
            problem = f"a grid needs finitely many values, and {name!r} is {distribution}; use choice() or step="
            raise SpaceError(problem)
        axes.append(values)
    size = prod(map(_count, axes))
    if size > MOST_POINTS:
        problem = f"the grid has {size} points, more than the {MOST_POINTS} that a sweep may have"
        raise SpaceError(problem)
    points = [_settle(space, dict(zip(space, values, strict=True))) for values in product(*axes)]
    # Where a hyperparameter does not matter, all its values make the same trial.
    different = tuple({json.dumps(point): point for point in points}.values())
    if trials is not None and len(different) > trials:
        problem = f"the grid has {len(different)} points, more than trials={trials}"
        raise SpaceError(problem)
    return different
