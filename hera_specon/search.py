"""Searches that ask as they go: each trial gets its hyperparameters when it starts, from how the others went."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from controllers.core.errors import SearchError
from controllers.core.parameters import MOST_PARAMETERS, MOST_TEXT
from controllers.search.cost import ON_THIS_MACHINE, check_cost
from controllers.search.optuna_search import sampler_of
from controllers.search.spec import (
    MOST_OPTIONS,
    MOST_SETTING,
    MOST_SETTINGS,
    MOST_WRITTEN,
    Condition,
    Dimension,
    NumberRange,
    Options,
    SearchSpec,
)
from hera_specon.errors import SpaceError, SweepError
from hera_specon.points import check_amounts
from hera_specon.settings import is_finite, is_whole
from hera_specon.space import Choice, Conditional, Continuous, Distribution, Integer, Space, Value, check_space

_LONGEST_NAME: Final = 57
"""Letters of a hyperparameter that has an annotation of its own."""
_LONGEST_SETTING: Final = 50
_MOST_WHOLE: Final = 2**53
"""A search reckons in floats, which hold whole numbers up to this one."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """A sampler of Optuna by its name, with its settings."""

    name: str
    settings: Mapping[str, Value] = field(default_factory=dict)


def tpe(**settings: Value) -> Sampler:
    """Return Optuna's tree-structured Parzen estimator, which suits most sweeps; it counts trials that still run.

    Args:
        **settings: Those of ``optuna.samplers.TPESampler``, such as ``n_startup_trials=20``, but for the seed.
    """
    return Sampler("tpe", settings)


def cmaes(**settings: Value) -> Sampler:
    """Return Optuna's CMA-ES, for numbers that depend on each other; it needs the package ``cmaes``.

    Args:
        **settings: Those of ``optuna.samplers.CmaEsSampler``, but for the seed.
    """
    return Sampler("cmaes", settings)


def sampler(kind: str | type, **settings: Value) -> Sampler:
    """Return any other sampler of Optuna.

    Args:
        kind: A class of ``optuna.samplers``, or its name: ``QMCSampler``.
        **settings: Its settings, but for the seed: numbers, texts and truth values.
    """
    return Sampler(kind.__name__ if inspect.isclass(kind) else str(kind), settings)


def random() -> Literal["random"]:
    """Return the search that draws all points beforehand. The workflow holds them, so it needs no controller."""
    return "random"


def grid() -> Literal["grid"]:
    """Return the search that takes every combination. The workflow holds them, so it needs no controller."""
    return "grid"


def search_text(search: Sampler, space: Space, trials: int | None, seed: int) -> str:
    """Return ``search`` over ``space`` as it stands on the pods of the trials.

    Raises:
        SpaceError: The space makes no sense.
        SweepError: The sampler or its settings make none, or ``trials`` is missing.
    """
    check_space(space)
    check_amounts(trials, seed)
    if trials is None:
        problem = f"search={search.name!r} needs trials=, the number of points to try"
        raise SweepError(problem)
    _check_settings(search)
    if len(space) > MOST_PARAMETERS:
        problem = f"space= has {len(space)} hyperparameters; a search takes at most {MOST_PARAMETERS}"
        raise SpaceError(problem)
    for name, distribution in space.items():
        if why_not := _why_unsearchable(name, distribution):
            problem = f"hyperparameter {name!r}: {why_not}"
            raise SpaceError(problem)
    try:
        dimensions = tuple(_dimension(name, distribution) for name, distribution in space.items())
        spec = SearchSpec(sampler=search.name, settings=dict(search.settings), seed=seed % 2**32, space=dimensions)
        sampler_of(spec, seed)
        check_cost(spec, trials, ON_THIS_MACHINE)
    except SearchError as error:
        problem = f"search=: {error}"
        raise SweepError(problem) from error
    if len(text := spec.written()) > MOST_WRITTEN:
        problem = f"the space takes {len(text)} characters to write, more than the {MOST_WRITTEN} of an annotation"
        raise SweepError(problem)
    return text


def _check_settings(search: Sampler) -> None:
    """Check the sampler's name and settings against what an annotation holds.

    Raises:
        SweepError: There are too many, or one is too long, too large or of another kind.
    """
    settings = search.settings
    if not 0 < len(search.name) <= MOST_TEXT or len(settings) > MOST_SETTINGS:
        problem = (
            f"search={search.name[:80]!r}: a sampler has a name of at most {MOST_TEXT} characters and at most "
            f"{MOST_SETTINGS} settings, not {len(settings)}"
        )
        raise SweepError(problem)
    for name, value in settings.items():
        fits = len(value) <= MOST_TEXT if isinstance(value, str) else is_finite(value) and abs(value) <= MOST_SETTING
        if not fits and not isinstance(value, bool):
            problem = (
                f"search={search.name!r}: {name}= is a number from {-MOST_SETTING} to {MOST_SETTING}, a truth value or "
                f"a text of at most {MOST_TEXT} characters, not {value!r}"
            )
            raise SweepError(problem)
        if len(name) > _LONGEST_SETTING or name.endswith("_") or not name.isascii():
            problem = f"search={search.name!r}: no sampler of Optuna has a setting {name[:80]!r}"
            raise SweepError(problem)


def _why_unsearchable(name: str, distribution: Distribution) -> str | None:
    """Return why no search takes a hyperparameter, None where one does."""
    if len(name) > _LONGEST_NAME or name.endswith("_"):
        return f"a search takes names of at most {_LONGEST_NAME} letters, no _ at the end"
    within, texts = distribution, list[Value]()
    if isinstance(distribution, Conditional):
        within, texts = distribution.within, [*distribution.needed, distribution.otherwise]
        if len(distribution.needed) > MOST_OPTIONS:
            return f"a search takes at most {MOST_OPTIONS} values for when(), not {len(distribution.needed)}"
    if isinstance(within, Choice):
        texts += within.options
        if len(within.options) > MOST_OPTIONS:
            whole = all(map(is_whole, within.options))
            hint = "; for evenly spaced numbers take integer(low, high, step=...)" if whole else ""
            return f"a search takes at most {MOST_OPTIONS} values of a choice(), not {len(within.options)}{hint}"
    elif isinstance(within, Integer) and max(abs(within.low), abs(within.high)) > _MOST_WHOLE:
        return f"a search takes whole numbers from {-_MOST_WHOLE} to {_MOST_WHOLE}, unlike {within}"
    if wrong := [text for text in texts if isinstance(text, str) and len(text) > MOST_TEXT]:
        return f"a search takes texts of at most {MOST_TEXT} characters, not {wrong[0][:80]!r} of {len(wrong[0])}"
    return None


def _dimension(name: str, distribution: Distribution) -> Dimension:
    condition, within = None, distribution
    if isinstance(distribution, Conditional):
        values, otherwise = distribution.needed, distribution.otherwise
        condition, within = Condition(name=distribution.name, values=values, otherwise=otherwise), distribution.within
    if isinstance(within, Continuous | Integer):
        whole = isinstance(within, Integer)
        step = None if whole and within.step == 1 else within.step
        domain: NumberRange | Options = NumberRange(
            low=within.low, high=within.last, log=within.log, whole=whole, step=step
        )
    else:
        domain = Options(options=tuple(within.values() or ()))
    return Dimension(name=name, domain=domain, when=condition)
