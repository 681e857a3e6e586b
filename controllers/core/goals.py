"""What a trial is meant to reach, as the annotations of its template or pod carry it, and what became of it. Pure."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from controllers.core import labels
from controllers.core.actions import Assessment
from controllers.core.aims import Aims, read_aims
from controllers.core.errors import SpeconError
from controllers.core.model import Direction, Goals, Snapshot, Trial, TrialId


class GoalError(SpeconError):
    """A goal is no number, or one that can't be reached; the message carries its name and value."""


@dataclass(frozen=True, slots=True)
class AskedGoals:
    """Goals before the trial is submitted: ``deadline_s`` counts from its submission. None where nothing was asked."""

    deadline_s: float | None = None
    target: float | None = None
    seconds_per_step: float | None = None

    def __post_init__(self) -> None:
        _check(labels.ANNOTATION_DEADLINE, self.deadline_s, above=0.0)
        _check(labels.ANNOTATION_TARGET, self.target, above=-math.inf)
        _check(labels.ANNOTATION_SECONDS_PER_STEP, self.seconds_per_step, above=0.0)

    def since(self, submitted_at: float) -> Goals:
        """Return the goals of a trial that was submitted at ``submitted_at`` seconds of the sweep's clock."""
        deadline_at = None if self.deadline_s is None else submitted_at + self.deadline_s
        return Goals(deadline_at, self.target, self.seconds_per_step)


def goals_in(notes: Mapping[str, str]) -> AskedGoals:
    """Return the goals among a trial's annotations.

    Raises:
        GoalError: One is no finite number, or a duration that is not above 0.
    """
    names = (labels.ANNOTATION_DEADLINE, labels.ANNOTATION_TARGET, labels.ANNOTATION_SECONDS_PER_STEP)
    return AskedGoals(*(_number(name, notes.get(name)) for name in names))


def aims_in(notes: Mapping[str, str]) -> Aims:
    """Return what a trial's annotations want beside its first objective.

    Raises:
        GoalError: One is no objective or no constraint, there are too many, or the first objective comes again.
    """
    further, bounds = (
        notes.get(name, "") for name in (labels.ANNOTATION_FURTHER_OBJECTIVES, labels.ANNOTATION_CONSTRAINTS)
    )
    try:
        aims = read_aims(further, bounds)
    except ValueError as error:
        message = f"annotation {labels.ANNOTATION_FURTHER_OBJECTIVES} or {labels.ANNOTATION_CONSTRAINTS}: {error}"
        raise GoalError(message) from None
    first = notes.get(labels.ANNOTATION_OBJECTIVE)
    if any(objective.metric == first for objective in aims.further):
        message = f"annotation {labels.ANNOTATION_FURTHER_OBJECTIVES} names the first objective {first!r} again"
        raise GoalError(message)
    return aims


def reached(value: float, target: float, direction: Direction) -> bool:
    """Return whether ``value`` of the objective is as good as ``target``, or better."""
    return value <= target if direction is Direction.MINIMIZE else value >= target


def with_goals_told(snapshot: Snapshot, assessments: Mapping[TrialId, Assessment]) -> Mapping[TrialId, Assessment]:
    """Return a policy's ``assessments`` with what is to be told of the goals of trials, whatever the policy goes by."""
    asked = [t for t in snapshot.unended if t.goals.deadline_at is not None or t.goals.target is not None]
    told = {trial.id: words for trial in asked if (words := "; ".join(_became_of(trial, snapshot.now)))}
    if not told:
        return assessments
    return {**assessments, **{name: _also(assessments.get(name, Assessment()), words) for name, words in told.items()}}


def _also(assessment: Assessment, words: str) -> Assessment:
    return replace(assessment, outlook=f"{assessment.outlook}; {words}" if assessment.outlook else words)


def _became_of(trial: Trial, now: float) -> Iterator[str]:
    """Yield what is to be told of the trial's goals: words that stay the same, since each change of them is written."""
    deadline, target, progress = trial.goals.deadline_at, trial.goals.target, trial.progress
    if deadline is not None and deadline <= now:
        yield f"missed its deadline, {deadline - trial.submitted_at:.10g} s after its submission"
    if target is None or progress is None:
        return
    if reached(progress.first, target, trial.direction):
        yield (
            f"its first report, {progress.first:.4g}, was past its target {target:.4g} already: "
            f"does that fit {trial.direction}?"
        )
    elif reached(progress.best, target, trial.direction):
        yield f"has reached its target {target:.4g}"


def _number(name: str, written: str | None) -> float | None:
    try:
        return None if written is None else float(written)
    except ValueError as error:
        message = (
            f"annotation {name} must be a number, not {written[:60]!r}" if written else f"annotation {name} is empty"
        )
        raise GoalError(message) from error


def _check(name: str, value: float | None, above: float) -> None:
    if value is not None and not above < value < math.inf:
        message = f"annotation {name} must be a finite number{'' if above else ' above 0'}, not {value}"
        raise GoalError(message)
