"""Searches that ask as they go: each trial gets its hyperparameters when it starts, from how the others went."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import ValidationError

from controllers.core.errors import SearchError
from controllers.search.cost import ON_THIS_MACHINE, check_cost
from controllers.search.optuna_search import sampler_of
from controllers.search.spec import (
    MOST_WRITTEN,
    Condition,
    Dimension,
    NumberRange,
    Options,
    SearchSpec,
)
from hera_specon.errors import SweepError
from hera_specon.space import Conditional, Continuous, Distribution, Integer, Space, Value, check_amounts, check_space

_LONGEST_NAME: Final = 57
"""Letters of a hyperparameter that has an annotation of its own."""


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
    for name in space:
        if len(name) > _LONGEST_NAME or name.endswith("_"):
            problem = (
                f"hyperparameter {name!r}: a search takes names of at most {_LONGEST_NAME} letters, no _ at the end"
            )
            raise SweepError(problem)
    try:
        dimensions = tuple(_dimension(name, distribution) for name, distribution in space.items())
        spec = SearchSpec(sampler=search.name, settings=dict(search.settings), seed=seed % 2**32, space=dimensions)
        sampler_of(spec, seed)
        check_cost(spec, trials, ON_THIS_MACHINE)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = f"search={search.name!r}: {'.'.join(map(str, first['loc']))}: {first['msg']}, not {first['input']!r}"
        raise SweepError(problem) from error
    except SearchError as error:
        problem = f"search=: {error}"
        raise SweepError(problem) from error
    if len(text := spec.written()) > MOST_WRITTEN:
        problem = f"the space takes {len(text)} characters to write, more than the {MOST_WRITTEN} of an annotation"
        raise SweepError(problem)
    return text


def _dimension(name: str, distribution: Distribution) -> Dimension:
    condition, within = None, distribution
    if isinstance(distribution, Conditional):
        values, otherwise = distribution.needed, distribution.otherwise
        condition, within = Condition(name=distribution.name, values=values, otherwise=otherwise), distribution.within
    if isinstance(within, Continuous | Integer):
        whole = isinstance(within, Integer)
        domain: NumberRange | Options = NumberRange(low=within.low, high=within.high, log=within.log, whole=whole)
    else:
        domain = Options(options=within.values() or ())
    return Dimension(name=name, domain=domain, when=condition)
