"""How far a trial has come, and how fast it still improves. Pure.

Growth is compared over models whose objectives have different units, so it is measured on
``e(t) = (E(t) - E_best) / (E_first - E_best)``, smaller being better whatever the direction.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from controllers.core.model import Category, Direction, Progress, Sample, Trial

Normalise = Literal["range", "none"]
"""``range`` divides a gain by all gained since the first report; ``none`` keeps the raw ``|dE|`` of the papers."""

IDLE_CORES = 0.01
"""Mean use, in cores, below which a trial was idle: a ratio to it would say nothing of the model."""
_MOST_STEPS: Final = 10**12
"""More steps make no sense."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The report that the next growth is measured from."""

    value: float
    step: int
    at: float
    cpu_seconds: float | None = None


def merge(previous: Progress | None, sample: Sample, direction: Direction) -> Progress | None:
    """Return what is known of a trial after ``sample``.

    A NaN or infinite value is counted once and otherwise changes nothing. A repeated poll of the same
    report, or one that is older than what is known, changes nothing either. Reports are ordered by time and
    then by step, since an attempt that resumes from an older checkpoint reports smaller steps later. Of a training that
    began again, nothing counts that was known before.

    Returns:
        None as long as no finite value was reported.
    """
    if not math.isfinite(sample.at):
        return previous
    if previous is not None and previous.training != sample.training:
        previous = None
    if previous is not None and previous.also != sample.also:
        # Such metrics come when they come, and need no report of the objective with them.
        previous = replace(previous, also=sample.also)
    order = _order(sample)
    if not math.isfinite(sample.value):
        if previous is None or order <= max(_order(previous), previous.dropped_report or (-math.inf, 0)):
            return previous
        return replace(previous, dropped=previous.dropped + 1, dropped_report=order)
    if previous is not None and order <= _order(previous):
        return previous
    first = _finite(sample.first)
    if first is None:
        first = sample.value if previous is None else previous.first
    bests = [first, sample.value] if previous is None else [first, sample.value, previous.best]
    if (told := _finite(sample.best)) is not None:
        bests.append(told)
    best = min(bests) if direction is Direction.MINIMIZE else max(bests)
    steps_total = previous.steps_total if previous is not None and sample.steps_total is None else sample.steps_total
    return Progress(
        first=first,
        best=best,
        latest=sample.value,
        step=sample.step,
        at=sample.at,
        cpu_seconds=_finite(sample.cpu_seconds),
        steps_total=steps_total,
        dropped=0 if previous is None else previous.dropped,
        dropped_report=None if previous is None else previous.dropped_report,
        training=sample.training,
        cpu_wait=_finite(sample.cpu_wait),
        also=sample.also,
    )


def is_stale(progress: Progress, now: float, bound: float) -> bool:
    """Return whether the newest finite report is more than ``bound`` seconds old at ``now``."""
    return now - progress.at > bound


def usable(progress: Progress | None, now: float, bound: float) -> Progress | None:
    """Return ``progress`` where it may be decided on: there is one, finite and not stale."""
    if progress is None or not math.isfinite(progress.latest) or is_stale(progress, now, bound):
        return None
    return progress


def mark(progress: Progress) -> Mark:
    """Return the newest report, to measure the next growth from."""
    return Mark(progress.latest, progress.step, progress.at, progress.cpu_seconds)


def reported_since(progress: Progress, since: Mark) -> bool:
    """Return whether there is a newer report than ``since``."""
    return _order(progress) > (since.at, since.step)


def growth(progress: Progress, since: Mark, direction: Direction, normalise: Normalise = "range") -> float:
    """Return how much the objective improved since ``since``: finite, and 0 where it got worse.

    Equation 5.1 of the thesis on the normalised value: ``(E_before - E_now) / |E_first - E_best|``, which
    is 0 while the first report is also the best. With ``normalise="none"`` it is the raw ``|dE|``.
    """
    # Halves, so that a difference of two huge values stays finite.
    halved = since.value / 2 - progress.latest / 2
    if normalise == "none":
        return min(abs(halved) * 2, sys.float_info.max)
    gained = abs(progress.first / 2 - progress.best / 2)
    improved = halved if direction is Direction.MINIMIZE else -halved
    if gained == 0 or improved <= 0:
        return 0.0
    return min(improved / gained, sys.float_info.max)


def mean_cores(progress: Progress, since: Mark) -> float | None:
    """Return the cores used on average between two reports (R of equation 4.2); None where unknown or near 0."""
    seconds = progress.at - since.at
    if progress.cpu_seconds is None or since.cpu_seconds is None or seconds <= 0:
        return None
    cores = (progress.cpu_seconds - since.cpu_seconds) / seconds
    return min(cores, sys.float_info.max) if cores >= IDLE_CORES else None


def growth_efficiency(gain: float, progress: Progress, since: Mark) -> float | None:
    """Return ``gain`` per second and per core used (equations 4.1 and 4.2); None where the use is unknown or near 0."""
    cores = mean_cores(progress, since)
    if cores is None:
        return None
    return min(gain / (progress.at - since.at) / cores, sys.float_info.max)


def recategorise(category: Category, *, fast: bool, slowing: bool) -> Category:
    """Return the next category: back to the first when ``fast``, one further when ``slowing``, else the same."""
    if fast:
        return Category.PROGRESSING
    if slowing:
        return Category.WATCHING if category is Category.PROGRESSING else Category.CONVERGED
    return category


def latest_end(trial: Trial) -> float:
    """Return when a trial ends by itself at the latest, in seconds of the sweep's clock; infinite where nobody knows.

    Its steps count as if they had taken all the time since its submission, so it ends earlier rather than later.
    """
    progress = trial.progress
    if progress is None or progress.steps_total is None or not 0 < progress.step <= progress.steps_total <= _MOST_STEPS:
        return math.inf
    pace = max(0.0, progress.at - trial.submitted_at) / progress.step
    return progress.at + pace * (progress.steps_total - progress.step)


def came_to_its_end(newest: Sample | None, of_others: Iterable[Sample]) -> bool:
    """Return whether a program that was asked to leave, and ended with 0, is known to have come to its end.

    Its last step is its total; or it told as many values of its objective as all trials of its sweep that have
    succeeded, which told equally many.

    Args:
        newest: its newest sample, None where it has told nothing.
        of_others: the newest samples of those that succeeded.
    """
    if newest is None:
        return False
    if newest.steps_total is not None:
        return newest.step + 1 >= newest.steps_total
    # Scripts that log without steps log all at step 0: it may be the first of many.
    return newest.step > 0 and {other.step for other in of_others} == {newest.step}


def tells_another_length(own: Mapping[str, object], of_other: Mapping[str, object], other: Sample) -> bool:
    """Return whether a hyperparameter sets how long trials train, as ``epochs`` may, and two have other values of it.

    Args:
        own: the hyperparameters of a trial.
        of_other: those of one that has come to its end.
        other: the newest sample of that one: its steps count from 0 or from 1.
    """
    lengths = {str(other.step), str(other.step + 1)}
    return any(str(value) in lengths and own.get(name) != value for name, value in of_other.items())


def _order(report: Sample | Progress) -> tuple[float, int]:
    return report.at, report.step


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
