"""The hyperparameters of a trial that goes on from another's checkpoint: those of its parent, changed. Pure."""

from random import Random
from typing import Final

from controllers.core.actions import Clone, Exploration
from controllers.core.errors import SearchError
from controllers.core.model import Point, Trial, Value
from controllers.search.spec import Dimension, NumberRange, Options, SearchSpec, read_search

_TOLD: Final = 80


def explored(trial: Trial, parent: Trial, clone: Clone) -> Point:
    """Return the hyperparameters of ``trial`` once it is the ``clone`` of ``parent``, all in the ranges of its search.

    Raises:
        SearchError: It has no search, its parent has another one, or none of what shall change is in that.
    """
    if not trial.search or trial.search != parent.search:
        message = f"only trials of one search go on from each other's checkpoints, unlike {trial.id} and {parent.id}"
        raise SearchError(message)
    spec = read_search(trial.search)
    point = spec.point_of(parent.parameters)
    if point is None:
        message = f"the hyperparameters of {parent.id} are not in the ranges of its search: {parent.parameters!r:.200}"
        raise SearchError(message)
    changing, values = changing_names(spec, clone.explore.names), dict(point)
    chance = Random(clone.explore.seed)  # noqa: S311 - explores

    def draw(dimension: Dimension) -> Value:
        value = values[dimension.name]
        return _changed(dimension, value, clone.explore, chance) if dimension.name in changing else value

    return spec.drawn(draw)


def changing_names(spec: SearchSpec, names: tuple[str, ...]) -> frozenset[str]:
    """Return which hyperparameters of ``spec`` change: those of ``names``, or all that are real numbers.

    Whole numbers and options often say how large a model is, and the checkpoint of one fits no other.

    Raises:
        SearchError: One of ``names`` is none of them, or there is no real number.
    """
    known = {dimension.name for dimension in spec.space}
    if unknown := [name for name in names if name not in known]:
        message = f"no hyperparameter {unknown[0][:_TOLD]!r} to change: there are {', '.join(sorted(known))}"
        raise SearchError(message)
    ranges = ((one.name, one.domain) for one in spec.space)
    reals = frozenset(name for name, domain in ranges if isinstance(domain, NumberRange) and not domain.whole)
    if not names and not reals:
        message = f"no hyperparameter is a real number, so name those that may change: {', '.join(sorted(known))}"
        raise SearchError(message)
    return frozenset(names) or reals


def _changed(dimension: Dimension, value: Value, explore: Exploration, chance: Random) -> Value:
    """Return another value of ``dimension``; the draws come in the same order whatever the values are."""
    again, pick = chance.random() < explore.resample, chance.random()
    drawn, domain = dimension.by_chance(chance), dimension.domain
    if again or not explore.factors:
        return drawn
    if isinstance(domain, Options):
        return _beside(domain, value, up=pick < 1 / 2)
    if isinstance(value, bool | str) or not domain.low <= value <= domain.high:
        return drawn  # it did not matter before, and had a value of its own for that
    factor = explore.factors[int(pick * len(explore.factors))]
    changed = value * factor
    if domain.whole or domain.step is not None:
        least = domain.step or 1.0
        changed = max(changed, value + least) if changed > value else min(changed, value - least)
    return domain.tidy(min(max(changed, domain.low), domain.high))


def _beside(domain: Options, value: Value, *, up: bool) -> Value:
    """Return the option after or before ``value``, which stays where there is none."""
    place = next((at for at, one in enumerate(domain.options) if type(one) is type(value) and one == value), 0)
    return domain.options[min(max(place + (1 if up else -1), 0), len(domain.options) - 1)]
