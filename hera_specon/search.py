"""Which points of a search space become trials."""

from collections.abc import Sequence
from itertools import product
from math import prod
from random import Random
from typing import Literal

from hera_specon.amounts import is_whole
from hera_specon.errors import SpaceError, SweepError
from hera_specon.space import Space, Value, check_space

Point = dict[str, Value]
"""One trial's hyperparameters."""
Search = Literal["random", "grid"]


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
    if trials is not None and (not is_whole(trials) or trials <= 0):
        problem = f"trials= is a whole number above 0, not {trials!r}"
        raise SweepError(problem)
    if not is_whole(seed):
        problem = f"seed= is a whole number, not {seed!r}"
        raise SweepError(problem)
    if search == "grid":
        return _grid(space, trials)
    if search == "random":
        return _drawn(space, trials, seed)
    problem = f"search= is 'random' or 'grid', not {search!r}"
    raise SweepError(problem)


def _drawn(space: Space, trials: int | None, seed: int) -> tuple[Point, ...]:
    if trials is None:
        problem = "search='random' needs trials=, the number of points to draw"
        raise SweepError(problem)
    # One stream per hyperparameter: neither order nor the other names change what is drawn.
    chances = {name: Random(f"{seed}:{name}") for name in space}  # noqa: S311 - repeatable, guards no secret
    return tuple({name: space[name].draw(chances[name]) for name in space} for _ in range(trials))


def _grid(space: Space, trials: int | None) -> tuple[Point, ...]:
    axes = [_axis(name, space) for name in space]
    size = prod(map(len, axes))
    if trials is not None and size > trials:
        problem = f"the grid has {size} points, more than trials={trials}"
        raise SpaceError(problem)
    return tuple(dict(zip(space, values, strict=True)) for values in product(*axes))


def _axis(name: str, space: Space) -> Sequence[Value]:
    values = space[name].values()
    if values is None:
        problem = f"a grid needs an end of values, and {name!r} is {space[name]}; use choice() or integer()"
        raise SpaceError(problem)
    return values
