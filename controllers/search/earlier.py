"""What a search may learn from the trials of earlier sweeps, whose spaces may be others. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controllers.core.aims import Direction, pareto_front
from controllers.core.earlier import EarlierTrial
from controllers.core.model import Value
from controllers.core.parameters import bound_parameters
from controllers.search.cost import Bound, numbers
from controllers.search.spec import Dimension, Options, SearchSpec, matters, read_search

_TPE: Final = "TPESampler"
_BY_THEIR_OWN: Final = frozenset({"RandomSampler", "QMCSampler", "NSGAIISampler", "NSGAIIISampler"})
"""Samplers that go by no trial, or by those alone that they chose themselves."""
CMAES: Final = "CmaEsSampler"
"""Begins from the best tenth of earlier trials, and goes by its own alone from then on."""
LEAST_SOURCES: Final = 10
"""Earlier trials that it needs for that."""
FIRST: Final = 5
"""Earlier trials that a search tries again, the best ones: what they come to now is known only then."""
MOST_POOR: Final = 20
"""Of the worse half of the earlier trials, the worst, which TPE is told. It takes a tenth of all that it knows for good
ones, and these must be the sweep's own."""
_OWN_BEGINNING: Final = frozenset({"x0", "sigma0", "use_separable_cma"})
"""Settings of CMA-ES that leave no room for another beginning."""
_DAY_S: Final = 24 * 3600.0
_HOUR_S: Final = 3600.0
_MINUTE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Lesson:
    """A trial of an earlier sweep in the words of this one: the values that were drawn.

    ``came_to`` and ``violations`` are as in ``EarlierTrial``; the former has no value where it failed.
    """

    values: tuple[tuple[str, Value], ...]
    came_to: tuple[float, ...] = ()
    violations: tuple[float, ...] = ()


def lessons_of(spec: SearchSpec, trials: Sequence[EarlierTrial]) -> tuple[list[Lesson], Counter[str]]:
    """Return what ``trials`` teach the search, and why how many of them teach it nothing.

    A trial takes no part where one of its values lies outside of the space: a sampler would take it for the nearest
    one inside. What it has beyond the space is left out of it.
    """
    lessons: list[Lesson] = []
    left_out = Counter[str]()
    for trial in trials:
        lesson = _lesson(spec, trial)
        if isinstance(lesson, Lesson):
            lessons.append(lesson)
        else:
            left_out[lesson] += 1
    if lessons and spec.kind == CMAES and sum(bool(lesson.came_to) for lesson in lessons) < LEAST_SOURCES:
        left_out[f"not, as the search {spec.sampler!r} begins from {LEAST_SOURCES} or more"] += len(lessons)
        lessons = []
    return lessons, left_out


def best_first(lessons: Iterable[Lesson], directions: Sequence[Direction]) -> list[Lesson]:
    """Return those of ``lessons`` that came to something, the best first.

    Those that break a constraint come last. Of several objectives those that no other beats come first; among them and
    among the others, the sum of their places by each objective counts.
    """
    told = [lesson for lesson in lessons if lesson.came_to]
    losses = [
        tuple(direction.loss(value) for direction, value in zip(directions, lesson.came_to, strict=True))
        for lesson in told
    ]
    places = [0] * len(told)
    for objective in range(len(directions)):
        for place, of in enumerate(sorted(range(len(told)), key=lambda of: losses[of][objective])):
            places[of] += place
    breaks = [sum(max(0.0, violation) for violation in lesson.violations) for lesson in told]
    kept = [of for of in range(len(told)) if not breaks[of]]
    front = {kept[of] for of in pareto_front([losses[of] for of in kept])}
    return [told[of] for of in sorted(range(len(told)), key=lambda of: (breaks[of], of not in front, places[of]))]


def to_try_again(best: Sequence[Lesson]) -> list[Lesson]:
    """Return those that a search begins with, of ``best``, the best first: each point once."""
    return list({lesson.values: lesson for lesson in best}.values())[:FIRST]


def poor_of(spec: SearchSpec, best: Sequence[Lesson]) -> Sequence[Lesson]:
    """Return those of ``best``, the best first, that show a search where it need not look; only TPE can be told."""
    worse = best[max(FIRST, len(best) // 2) :]
    return worse[-MOST_POOR:] if spec.kind == _TPE else ()


def that_fit(spec: SearchSpec, lessons: list[Lesson], own: int, bound: Bound) -> list[Lesson]:
    """Return the newest of ``lessons``, as many as the search may compute with beside ``own`` trials."""
    most = len(lessons)
    while most and numbers(spec, own + most) > bound.numbers:
        most //= 2
    return lessons[:most]


def what_is_learnt(trials: Sequence[EarlierTrial], search: str) -> str:
    """Return a line for people about what a sweep learns from ``trials`` of earlier ones.

    Args:
        trials: They.
        search: The text of its search, empty where it has its points beforehand.

    Raises:
        SearchError: It is no search.
    """
    if not trials:
        return "nothing was learnt before: no trial of an earlier sweep had ended"
    told = [f"{len(trials)} trials of earlier sweeps ({_ages(trials)})"]
    if search:
        spec = read_search(search)
        lessons, left_out = lessons_of(spec, trials)
        failed = sum(not lesson.came_to for lesson in lessons)
        told.append(f"the search takes {len(lessons) - failed}")
        told += [f"{count} {why}" for why, count in sorted(left_out.items())]
        told += [f"{failed} failed"] if failed else []
    lengths = sum(trial.cost is not None for trial in trials)
    return f"learnt before: {', '.join(told)}; {lengths or 'none'} tell what a step costs"


def why_nothing_learnt(spec: SearchSpec) -> str | None:
    """Return why the sampler learns nothing from earlier sweeps, None where it does."""
    if spec.kind in _BY_THEIR_OWN:
        return f"the search {spec.sampler!r} goes by none but its own trials"
    if spec.kind != CMAES:
        return None
    if spec.settings.keys() & _OWN_BEGINNING:
        return f"the search {spec.sampler!r} was given where to begin"
    ranges = [dimension for dimension in spec.space if not isinstance(dimension.domain, Options)]
    if not ranges or any(dimension.when is not None for dimension in ranges):
        return f"the search {spec.sampler!r} begins from numbers that all trials have"
    return None


def _lesson(spec: SearchSpec, trial: EarlierTrial) -> Lesson | str:
    if why_not := why_nothing_learnt(spec):
        return f"not, as {why_not}"
    if trial.came_to is None:
        return "logged another objective"
    shown, values, missing = dict(trial.parameters), dict[str, Value](), list[str]()
    for dimension in spec.space:
        if dimension.when is not None and not matters(dimension.when, values):
            continue
        value = _value(dimension, shown)
        if dimension.name not in shown:
            missing.append(dimension.name)
        elif value is None:
            return f"with {dimension.name!r} outside of its bounds"
        else:
            values[dimension.name] = value
    if missing and (spec.kind == CMAES or not values):
        return f"without {missing[0]!r}"
    return Lesson(tuple(values.items()), trial.came_to, trial.violations)


def _value(dimension: Dimension, shown: Mapping[str, float | str]) -> Value | None:
    """Return the value of a hyperparameter as the space has it; None where it has none such."""
    domain, given = dimension.domain, shown.get(dimension.name)
    if isinstance(domain, Options):
        known = ((option, dict(bound_parameters({dimension.name: option}))) for option in domain.options)
        return next((option for option, bound in known if bound.get(dimension.name) == given), None)
    if not isinstance(given, float) or not domain.low <= given <= domain.high:
        return None
    if not domain.whole and domain.step is None:
        return given
    tidied = domain.tidy(given)
    return tidied if tidied == given else None


def _ages(trials: Sequence[EarlierTrial]) -> str:
    youngest, oldest = min(trial.age_s for trial in trials), max(trial.age_s for trial in trials)
    told = [_age(youngest), _age(oldest)]
    return f"{told[0]} old" if told[0] == told[1] else f"{told[0]} to {told[1]} old"


def _age(seconds: float) -> str:
    for unit, name in ((_DAY_S, "days"), (_HOUR_S, "h"), (_MINUTE_S, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"
