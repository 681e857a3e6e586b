"""Whether a sweep needs no more of its trials, by the rules that its author gave. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final

from controllers.core.model import Direction, Phase, Progress, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.core.stop_rules import Plateau, StopRules, duration_told

_HOUR_S: Final = 3600.0
_WELL: Final = frozenset({Phase.SUCCEEDED, Phase.STOPPED})


@dataclass(frozen=True, slots=True)
class SweepCourse:
    """How a sweep has gone so far, beside what its trials show.

    ``began_at`` is when its first trial started, in seconds of the sweep's clock, None before. ``held`` are the core
    seconds that trials have requested while they ran, of those that report no CPU time. ``judged`` is how many
    trials had come to a value when a terminator was asked last.
    """

    began_at: float | None = None
    held: Mapping[TrialId, float] = field(default_factory=dict)
    judged: int = 0


def why_enough(rules: StopRules, now: float, trials: Sequence[Trial], course: SweepCourse) -> str:
    """Return why a sweep is to end, in words for people; empty while none of its ``rules`` holds.

    Args:
        rules: What its author gave.
        now: Seconds of the sweep's clock.
        trials: All of its trials.
        course: What else is known of it.
    """
    return next(filter(None, _whys(rules, now, trials, course)), "")


def come_to_values(trials: Iterable[Trial]) -> list[tuple[Trial, Progress]]:
    """Return those of ``trials`` that are over and have a value, with it: one that failed has none."""
    return [(trial, trial.progress) for trial in trials if trial.phase in _WELL and trial.progress is not None]


def _whys(rules: StopRules, now: float, trials: Sequence[Trial], course: SweepCourse) -> Iterator[str]:
    if rules.value is not None:
        yield _value_reached(rules.value, trials)
    if rules.plateau is not None:
        yield _no_better(rules.plateau, trials)
    if rules.after_s is not None and course.began_at is not None:
        passed = now >= course.began_at + rules.after_s - CLOCK_SLACK
        yield f"{duration_told(rules.after_s)} have passed" if passed else ""
    if rules.cpu_hours is not None:
        used = cpu_seconds(trials, course) / _HOUR_S
        yield f"{rules.cpu_hours:g} CPU hours are used" if used >= rules.cpu_hours else ""


def cpu_seconds(trials: Sequence[Trial], course: SweepCourse) -> float:
    """Return the CPU time of ``trials`` in seconds: as they report it, or what they have requested while they ran."""
    return sum(
        course.held.get(trial.id, 0.0) if (reported := _reported(trial)) is None else reported for trial in trials
    )


def course_after(before: SweepCourse, now: float, trials: Sequence[Trial], held_s: float | None) -> SweepCourse:
    """Return how a sweep has gone at ``now``; ``held_s`` are the seconds since the look before, None to count none."""
    began_at = before.began_at
    if began_at is None and any(trial.live or trial.phase.ended for trial in trials):
        began_at = now
    if held_s is None:
        return SweepCourse(began_at)
    held = {trial.id: before.held.get(trial.id, 0.0) for trial in trials if _reported(trial) is None}
    for trial in trials:
        if trial.live and trial.id in held:
            held[trial.id] += trial.cpu * trial.workers * held_s
    return SweepCourse(began_at, {name: seconds for name, seconds in held.items() if seconds})


def holds_untold(trials: Sequence[Trial]) -> bool:
    """Return whether any of ``trials`` runs and reports no CPU time."""
    return any(trial.live and _reported(trial) is None for trial in trials)


def _reported(trial: Trial) -> float | None:
    return None if trial.progress is None else trial.progress.cpu_seconds


def _value_reached(value: float, trials: Sequence[Trial]) -> str:
    """Return that a trial has reported ``value`` or better, in mid training too; one that failed has no model."""
    for trial in trials:
        if trial.progress is not None and trial.phase is not Phase.FAILED:
            best = trial.progress.best
            if best <= value if trial.direction is Direction.MINIMIZE else best >= value:
                return f"{best:.6g} reached {value:g}"
    return ""


def _no_better(rule: Plateau, trials: Sequence[Trial]) -> str:
    """Return that the last trials which ended have improved the best value by too little.

    Trials that failed count for nothing, and neither do those that never reported a finite value. The others ended
    when they reported last.
    """
    losses = {
        (progress.at, trial.id): progress.best * (1 if trial.direction is Direction.MINIMIZE else -1)
        for trial, progress in come_to_values(trials)
    }
    last = set(nlargest(rule.trials, losses))
    earlier = [loss for ended, loss in losses.items() if ended not in last]
    if not earlier or min(earlier) - min(losses.values()) >= rule.by:
        return ""
    return f"no {rule.by:g} better in {rule.trials} trials"
