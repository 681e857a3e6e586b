"""The settings of a sweep apart from its search space: names, numbers, objective, arrivals, policy."""

import keyword
import math
import posixpath
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol, TypeGuard

from controllers.core.labels import INPUT_DELAY, INPUT_PARAMS, INPUT_TRIAL, SUFFIX_ARRIVAL, Keep
from controllers.core.means import MOST_MONEY, MOST_S, Means, why_no_amount
from controllers.core.model import Direction
from controllers.core.policy import Policy
from controllers.core.queue_places import why_no_priority, why_no_weight
from controllers.policies.registry import parse_policy, policy_spec
from controllers.policies.wrappers.stacked import Stacked
from controllers.worlds.local.workflow.values import ManifestValueError, parse_duration
from controllers.worlds.local.working_folders import check_own
from hera_specon.errors import SpaceError, SweepError
from mlflow_hooks.printed.named import NOT_IN_NAMES, kept_name

_LONGEST_METRIC: Final = 250


@dataclass(frozen=True, slots=True)
class Objective:
    """The metric, under the name it is logged with, and which way it improves."""

    metric: str
    direction: Direction

    def __post_init__(self) -> None:
        if problem := why_no_metric(self.metric):
            raise SweepError(problem)


def why_no_metric(name: object) -> str | None:
    """Return why MLflow takes no metric of this name."""
    if not 0 < len(str(name)) <= _LONGEST_METRIC:
        return f"an objective is the name of a metric, of 1 to {_LONGEST_METRIC} characters, not {name!r}"
    if wrong := sorted(set(NOT_IN_NAMES.findall(str(name)))):
        return (
            f"MLflow takes no metric of the name {name!r}: it holds {', '.join(map(repr, wrong))}, and may "
            "hold letters, digits, spaces and _ - . : / only. Log it under such a name; what is printed is "
            f"kept as {kept_name(str(name))!r}"
        )
    short = posixpath.normpath(str(name))
    if short != str(name) or short in {".", ".."} or short.startswith(("/", "../")):
        return f"MLflow takes no metric of the name {name!r}: as a path it is another, {short!r}"
    return None


def minimize(metric: str) -> Objective:
    """Return the objective of a low ``metric``: a loss, an error.

    Raises:
        SweepError: MLflow takes no metric of that name.
    """
    return Objective(metric, Direction.MINIMIZE)


def maximize(metric: str) -> Objective:
    """Return the objective of a high ``metric``: an accuracy, a score.

    Raises:
        SweepError: MLflow takes no metric of that name.
    """
    return Objective(metric, Direction.MAXIMIZE)


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether ``value`` is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite(value: object) -> TypeGuard[int | float]:
    """Return whether ``value`` is a number, neither NaN nor infinite."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


RESERVED_INPUTS: Final = frozenset({INPUT_TRIAL, INPUT_PARAMS, INPUT_DELAY})
"""Input parameters that every sweep has already."""

_HYPERPARAMETER: Final = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_.-]{0,48}[A-Za-z0-9_])?")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST: Final = 63 - len(SUFFIX_ARRIVAL)


def check_sweep_name(name: str | None) -> str:
    """Return ``name``.

    Raises:
        SweepError: It is no DNS-1123 label of at most 55 characters; it becomes a label's value and,
            with a suffix, the names of other templates.
    """
    if not name or len(name) > _LONGEST or not _LABEL.fullmatch(name):
        problem = f"needs a name of lower case letters, digits and '-', at most {_LONGEST} characters, not {name!r}"
        problem = f"a sweep {problem}"
        raise SweepError(problem)
    return name


def input_name(hyperparameter: str) -> str:
    """Return the name of the input parameter that holds a hyperparameter: Argo allows no dots there.

    Variables of a trial's environment are named so, too, since a shell knows neither dots nor dashes.
    """
    return hyperparameter.replace(".", "_").replace("-", "_")


def check_hyperparameter(name: object) -> str:
    """Return ``name``.

    Raises:
        SpaceError: It is no name such as ``lr``, ``optim.lr`` or ``weight-decay``, or one that every trial has already.
    """
    if not isinstance(name, str) or not _HYPERPARAMETER.fullmatch(name) or keyword.iskeyword(name):
        problem = f"a hyperparameter has a name such as 'lr', 'optim.lr' or 'weight-decay', not {name!r}"
        raise SpaceError(problem)
    if input_name(name) in RESERVED_INPUTS:
        problem = f"a hyperparameter cannot be named {name!r}: every trial has an input of that name"
        raise SpaceError(problem)
    return name


def check_distinct(names: Collection[str], what: str) -> None:
    """Check that no name comes twice.

    Raises:
        SweepError: Some do; the message starts with ``what`` and lists them.
    """
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        problem = f"{what}: {', '.join(map(repr, repeated))}"
        raise SweepError(problem)


class Arrivals(Protocol):
    """How long each trial waits after the sweep's start."""

    def delays(self, trials: int) -> tuple[float, ...]:
        """Return seconds to wait, one for each trial in order."""
        ...


@dataclass(frozen=True, slots=True)
class Every:
    """One trial each ``interval`` seconds, the first at once."""

    interval: float

    def __post_init__(self) -> None:
        _check_seconds("every()", self.interval)

    def delays(self, trials: int) -> tuple[float, ...]:
        """Return 0, one interval, two intervals and so on."""
        return tuple(number * self.interval for number in range(trials))


@dataclass(frozen=True, slots=True)
class AtRandom:
    """Each trial at a moment of its own, evenly spread over ``within`` seconds."""

    within: float
    seed: int = 0

    def __post_init__(self) -> None:
        _check_seconds("at_random()", self.within)

    def delays(self, trials: int) -> tuple[float, ...]:
        """Return delays to a tenth of a second; the same seed gives the same ones."""
        chance = Random(self.seed)  # noqa: S311 - repeatable, guards no secret
        return tuple(round(chance.uniform(0.0, self.within), 1) for _ in range(trials))


def every(interval: float) -> Every:
    """Return arrivals ``interval`` seconds apart.

    Raises:
        SweepError: ``interval`` is not a finite number above 0.
    """
    return Every(interval)


def at_random(within: float, seed: int = 0) -> AtRandom:
    """Return arrivals spread at random over ``within`` seconds.

    Raises:
        SweepError: ``within`` is not a finite number above 0.
    """
    return AtRandom(within, seed)


def _check_seconds(what: str, seconds: object) -> None:
    if not is_finite(seconds) or seconds <= 0:
        problem = f"{what} takes seconds above 0, not {seconds!r}"
        raise SweepError(problem)


WorkersChoice = int | tuple[int, int]
"""How many workers a trial has, or the least and the most that it may have."""
MOST_WORKERS: Final = 64
"""Greatest number of workers of one trial."""


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers train a trial together: at least, and at most."""

    least: int
    most: int


def workers_range(given: object) -> Workers:
    """Return how many workers a trial may have: ``4`` for four, ``(1, 4)`` for one to four.

    Raises:
        SweepError: They are no whole numbers from 1 to ``MOST_WORKERS``, or the least is above the most.
    """
    numbers = given if isinstance(given, tuple | list) else (given, given)
    least, most = numbers if len(numbers) == 2 else (None, None)  # noqa: PLR2004 - a pair
    if not is_whole(least) or not is_whole(most) or least < 1 or most > MOST_WORKERS:
        problem = f"workers= is a whole number from 1 to {MOST_WORKERS}, or two such as (1, 4), not {given!r}"
        raise SweepError(problem)
    if least > most:
        problem = f"workers= has the least first, then the most, as in ({most}, {least}), not {given!r}"
        raise SweepError(problem)
    return Workers(least, most)


PolicyChoice = str | Policy[Any] | Sequence[Policy[Any]]
"""A policy, several stacked, or a spec string such as ``specon:alpha=0.01,interval=30``."""


def own_paths(given: object) -> tuple[str, ...] | None:
    """Return the paths that ``own_folder=`` names, none for True; None where trials share their working folder.

    Raises:
        SweepError: it is neither a bool nor a list of paths within the folder.
    """
    if isinstance(given, bool):
        return () if given else None
    if not isinstance(given, list | tuple) or not all(isinstance(path, str) for path in given):
        problem = f"own_folder= is True, False or a list of paths such as ['checkpoints'], not {given!r}"
        raise SweepError(problem)
    try:
        check_own(given)
    except ValueError as error:
        problem = f"own_folder= names {error}"
        raise SweepError(problem) from error
    return tuple(given)


def kept_checkpoints(given: object) -> Keep:
    """Return what ``keep=`` names.

    Raises:
        SweepError: it names nothing of that kind.
    """
    try:
        return Keep(str(given))
    except ValueError as error:
        problem = f"keep= is one of {', '.join(repr(keep.value) for keep in Keep)}, not {given!r}"
        raise SweepError(problem) from error


def sweep_means(by: object, budget: object) -> Means:
    """Return what ``by=`` and ``budget=`` of a sweep say.

    Raises:
        SweepError: One is nothing of the kind.
    """
    seconds = by
    if isinstance(by, str):
        try:
            seconds = parse_duration(by)
        except ManifestValueError as error:
            problem = f"by= is a time after the sweep's start such as 10800 or '3h', not {by!r}"
            raise SweepError(problem) from error
    for name, given, most in (("by=", seconds, MOST_S), ("budget=", budget, MOST_MONEY)):
        why_not = None if given is None else why_no_amount(name, given, most)
        if why_not is not None:
            raise SweepError(why_not)
    return Means(*(None if given is None else float(str(given)) for given in (seconds, budget)))


def check_place_among_others(weight: object, priority: object) -> None:
    """Check what a sweep says of its place among those that share a cluster with it; None says nothing.

    Raises:
        SweepError: One is out of its bounds.
    """
    whys = (None if weight is None else why_no_weight(weight), None if priority is None else why_no_priority(priority))
    for problem in filter(None, whys):
        raise SweepError(problem)


def policy_text(policy: PolicyChoice) -> str:
    """Return the spec string of ``policy``; a string is checked and put into its usual form.

    Raises:
        UnknownPolicyError: There is no such policy, or one comes twice.
        PolicyOrderError: A policy that suspends comes after one that places.
        PolicyParameterError: A parameter is unknown or out of bounds.
    """
    if not isinstance(policy, str | Sequence):
        return policy_spec(policy)
    stack = policy if isinstance(policy, str) else Stacked.separator.join(map(policy_spec, policy))
    return policy_spec(parse_policy(stack))
