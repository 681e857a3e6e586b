"""What a trial's parameters tell of its length: a small regression over the sweep's other trials. Pure.

A law says how the logarithm of a positive number (steps in all, what a step costs) follows from the parameters: a mean,
and a few terms. It is found by forward selection: of all parameters the one that explains most, then the one that
explains most of what is left, as long as each makes the errors smaller that one makes in guessing every trial from the
others (leave-one-out). With the few trials that are known when it matters, chance alone explains much. So a term must
make the errors smaller than the best of so many worthless parameters would.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from statistics import NormalDist
from typing import Final

from controllers.core.model import Parameters

Example = tuple[Parameters, float]
"""The parameters of a trial, and the logarithm of the number that a law is to tell (``log_of``)."""

LEAST_EXAMPLES: Final = 4
MOST_EXAMPLES: Final = 64
MOST_TERMS: Final = 4
MOST_VALUES: Final = 8
"""Values of a text parameter that count: the most frequent ones."""
MOST_COLUMNS: Final = 64
RIDGE: Final = 0.1
"""Draws each weight towards 0, like an example that says nothing of the weight's term."""
PENALTY: Final = 1.5
"""By what multiple of the extended Bayesian information criterion (Chen and Chen 2008) a term must improve the law.

With 1.5, a law found something in 15 of 100 sets of four trials with five worthless parameters, in 3 of 100 of seven.
"""
REACH: Final = 2.0
"""A value counts at most this many times as far from the mean as the farthest that was seen."""
LEAST_SPREAD: Final = 0.02
MOST_SPREAD: Final = 3.0
UNKNOWN_SPREAD: Final = 1.0
"""Spread of a law that rests on a single trial."""
_FARTHEST: Final = 30.0
_NORMAL: Final = NormalDist()
_UPPER: Final = _NORMAL.cdf(1.0)


@dataclass(frozen=True, slots=True)
class Column:
    """What a law looks at in a trial: a number, its logarithm (``logged``), or whether a text is ``text``.

    ``unit`` is what a number is counted in, ``mean`` and ``scale`` standardise it; ``reach`` is the greatest distance
    from the mean that was seen then.
    """

    name: str
    text: str | None = None
    logged: bool = False
    unit: float = 1.0
    mean: float = 0.0
    scale: float = 1.0
    reach: float = math.inf

    def of(self, parameters: Mapping[str, float | str]) -> float:
        """Return how far the trial is from the mean; 0, as if it were the mean, where it lacks the parameter."""
        raw = self.raw(parameters)
        if raw is None:
            return 0.0
        return min(max((raw - self.mean) / self.scale, -REACH * self.reach), REACH * self.reach)

    def raw(self, parameters: Mapping[str, float | str]) -> float | None:
        """Return what is there before it is standardised."""
        value = parameters.get(self.name)
        if value is None:
            return None
        if self.text is not None:
            return float(value == self.text)
        if isinstance(value, str) or (self.logged and value <= 0):
            return None
        return math.log(value) if self.logged else value / self.unit


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a law: ``weight`` times what ``column`` tells beyond the terms before it (``shared`` with each).

    ``size`` is the sum of squares of that over the examples.
    """

    column: Column
    weight: float
    size: float
    shared: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Law:
    """How a number follows from a trial's parameters.

    ``mean`` is that of the logarithms, ``spread`` the standard deviation of the errors in them among the examples,
    ``low`` and ``high`` the bounds of what it tells. Without ``terms`` the parameters explain nothing, and it tells the
    mean.
    """

    mean: float
    spread: float
    low: float
    high: float
    terms: tuple[Term, ...] = ()

    def of(self, parameters: Parameters) -> tuple[float, float]:
        """Return the logarithm of the number for a trial, and its error's standard deviation.

        The farther the trial's parameters are from those of the examples, the greater is that error.
        """
        given, told, far, beyond = dict(parameters), self.mean, 0.0, list[float]()
        for term in self.terms:
            new = term.column.of(given) - sum(part * other for part, other in zip(term.shared, beyond, strict=True))
            beyond.append(new)
            told += term.weight * new
            far += new * new / (term.size + RIDGE)
        return min(max(told, self.low), self.high), min(self.spread * math.sqrt(1 + far), MOST_SPREAD)


def log_of(number: float) -> float:
    """Return the logarithm of a count or a cost that any program may report: bounded, so that no sum overflows."""
    return math.log(min(max(number, 1e-9), 1e18))


def law_of(examples: Sequence[Example]) -> Law | None:
    """Return the law behind the last 64 of ``examples``; None where there are none.

    The order of the examples changes nothing. The time that it takes grows with examples times parameters.
    """
    return _law_of(tuple(examples[-MOST_EXAMPLES:])) if examples else None


def left_beyond(log_total: float, spread: float, done: float) -> tuple[float, float]:
    """Return what is left of a total that is log-normal and known to be greater than ``done``, and its own log-spread.

    What is left is the median: it comes to more as often as to less.
    """
    if done <= 0 or math.log(done) < log_total - _FARTHEST:
        return math.exp(log_total), spread
    beyond = min((math.log(done) - log_total) / spread, _FARTHEST)
    tail = math.erfc(beyond / math.sqrt(2)) / 2
    # As distances from ``done`` in logarithms, so that nothing is lost where little is left.
    median, upper = (
        done * math.expm1(max(-_NORMAL.inv_cdf(tail * part) - beyond, 1e-9) * spread) for part in (0.5, 1 - _UPPER)
    )
    return median, math.log(upper / median)


# What a step costs changes a little with every report. Rounded costs ask for the same law again and again.
@lru_cache(maxsize=32)
def _law_of(examples: tuple[Example, ...]) -> Law:
    trials, values = [dict(parameters) for parameters, _ in examples], [value for _, value in examples]
    count, mean = len(values), math.fsum(values) / len(values)
    span = max(values) - min(values)
    law = Law(mean, UNKNOWN_SPREAD, min(values) - span, max(values) + span)
    if count < 2:  # noqa: PLR2004 - one trial says nothing of how unlike trials are
        return law
    left = [value - mean for value in values]
    held = [1 / count] * count
    error = _error(left, held)
    candidates = [(column, [column.of(trial) for trial in trials]) for column in _columns(trials)]
    terms: list[Term] = []
    chosen: list[list[float]] = []
    shared: dict[Column, tuple[float, ...]] = {column: () for column, _ in candidates}
    while count >= LEAST_EXAMPLES and candidates and len(terms) < min(MOST_TERMS, (count - 1) // 2):
        tried = [(*_try_term(told, left, held), column, told) for column, told in candidates]
        best, weight, column, told = min(tried, key=itemgetter(0))
        chance = PENALTY * (math.log(count) + 2 * math.log(len(candidates))) / count
        if not best < math.exp(-chance) * error or error <= count * LEAST_SPREAD**2:
            break
        error, size = best, _dot(told, told)
        left = [value - weight * part for value, part in zip(left, told, strict=True)]
        held = [value + part * part / (size + RIDGE) for value, part in zip(held, told, strict=True)]
        terms.append(Term(column, weight, size, shared[column]))
        chosen.append(told)
        candidates = [(other, parts) for other, parts in candidates if other != column]
        for number, (other, parts) in enumerate(candidates):
            same = _dot(told, parts) / size
            shared[other] = (*shared[other], same)
            beyond = [value - same * part for value, part in zip(parts, told, strict=True)]
            candidates[number] = other, beyond
    spread = math.sqrt(error / (count - 2 * len(terms)))
    return replace(law, spread=min(max(spread, LEAST_SPREAD), MOST_SPREAD), terms=tuple(terms))


def _try_term(told: Sequence[float], left: Sequence[float], held: Sequence[float]) -> tuple[float, float]:
    """Return the error that would be left with another term, and its weight."""
    size = _dot(told, told)
    if size < 1e-6 * len(told):
        return math.inf, 0.0  # the terms before it tell all that it tells
    weight = _dot(told, left) / (size + RIDGE)
    after = [value - weight * part for value, part in zip(left, told, strict=True)]
    return _error(after, [value + part * part / (size + RIDGE) for value, part in zip(held, told, strict=True)]), weight


def _error(left: Sequence[float], held: Sequence[float]) -> float:
    """Return the sum of squares of the leave-one-out errors, from what is left and each trial's hold on its own guess.

    That hold is its leverage: its diagonal element of the hat matrix (Allen's PRESS, 1974).
    """
    return math.fsum((value / max(1 - part, 1e-9)) ** 2 for value, part in zip(left, held, strict=True))


def _dot(first: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(first, other, strict=True))


def _columns(trials: Sequence[Mapping[str, float | str]]) -> Iterator[Column]:
    """Yield what the parameters of ``trials`` may tell: whatever is not the same in all that have it."""
    columns: list[Column] = []
    for name in sorted({name for trial in trials for name in trial}):
        values = [trial[name] for trial in trials if name in trial]
        numbers = [value for value in values if not isinstance(value, str)]
        if len(numbers) == len(values):
            logged = min(numbers) > 0
            columns.append(Column(name, logged=logged, unit=1.0 if logged else max(map(abs, numbers)) or 1.0))
        else:
            texts = sorted({str(v) for v in values if isinstance(v, str)}, key=lambda text: (-values.count(text), text))
            columns += [Column(name, text=text) for text in texts[:MOST_VALUES]]
    for column in columns[:MOST_COLUMNS]:
        raw = [value for trial in trials if (value := column.raw(trial)) is not None]
        mean = math.fsum(raw) / len(raw)
        scale = math.sqrt(math.fsum((value - mean) ** 2 for value in raw) / len(raw))
        if scale > 1e-9 * max(1.0, abs(mean)):
            reach = max(abs(value - mean) for value in raw) / scale
            yield replace(column, mean=mean, scale=scale, reach=reach)
