"""How well the goals of a sweep's trials were reached: the measures of the papers whose policies serve them. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from controllers.goals import AskedGoals, reached
from controllers.model import Direction
from controllers.results import RunResult
from controllers.timeline import EventKind, TimelineEvent


@dataclass(frozen=True, slots=True)
class DeadlinesMet:
    """How many trials had a deadline, and how many of these ended well before it."""

    asked: int
    met: int

    @property
    def share(self) -> float:
        """Part of the deadlines that was met, 1 where there was none."""
        return self.met / self.asked if self.asked else 1.0


def deadlines_met(result: RunResult, goals: Mapping[str, AskedGoals]) -> DeadlinesMet:
    """Count the deadlines that were met: the completion rate of the deadline framework.

    Args:
        result: How the trials went.
        goals: What was asked of each, by id.
    """
    deadlines = {name: asked.deadline_s for name, asked in goals.items() if asked.deadline_s is not None}
    ended = {trial.id: trial.completion_s for trial in result.trials if trial.succeeded}
    met = sum(ended.get(name, math.inf) <= deadline for name, deadline in deadlines.items())
    return DeadlinesMet(len(deadlines), met)


def times_to_target(
    timeline: Iterable[TimelineEvent], goals: Mapping[str, AskedGoals], direction: Direction
) -> dict[str, float]:
    """Return the seconds from each trial's submission to its first report past its target: TRADL's measure.

    Trials without a target, and those that never got there, are left out. A report counts when it was seen.
    """
    submitted: dict[str, float] = {}
    found: dict[str, float] = {}
    for event in timeline:
        submitted.setdefault(event.trial, event.at)
        target = goals[event.trial].target if event.trial in goals else None
        if target is None or event.kind is not EventKind.REPORT or event.value is None or event.trial in found:
            continue
        if reached(event.value, target, direction):
            found[event.trial] = event.at - submitted[event.trial]
    return found


def seconds_per_step(timeline: Iterable[TimelineEvent]) -> dict[str, float]:
    """Return the seconds that a step took on average, from the first report that was seen of a trial to the last."""
    reports: dict[str, list[tuple[float, int]]] = {}
    for event in timeline:
        if event.kind is EventKind.REPORT and event.step is not None:
            reports.setdefault(event.trial, []).append((event.at, event.step))
    spans = {name: (seen[-1][0] - seen[0][0], seen[-1][1] - seen[0][1]) for name, seen in reports.items()}
    return {name: seconds / steps for name, (seconds, steps) in spans.items() if steps > 0}


def satisfied(took: Mapping[str, float], goals: Mapping[str, AskedGoals], tolerance: float) -> tuple[str, ...]:
    """Return the trials whose steps took as long as they should, within ``tolerance`` of that: DQoES's measure."""
    return tuple(
        name
        for name, asked in goals.items()
        if (goal := asked.seconds_per_step) is not None and abs(took.get(name, math.inf) - goal) <= tolerance * goal
    )


def fast_enough(took: Mapping[str, float], goals: Mapping[str, AskedGoals], tolerance: float) -> tuple[str, ...]:
    """Return the trials whose steps took no longer than they should, within ``tolerance`` of that.

    With shares that are soft, a trial that is alone is faster than anybody asked for, and nobody minds.
    """
    return tuple(
        name
        for name, asked in goals.items()
        if (goal := asked.seconds_per_step) is not None and took.get(name, math.inf) <= (1 + tolerance) * goal
    )


def share_of_allocation_used(timeline: Iterable[TimelineEvent]) -> float:
    """Return the part of the CPU allocated to trials that they used, from 0 to 1; 1 where none was allocated.

    At every moment a trial has allocated what it requests while it runs; what it uses beyond that, because a node has
    some to spare, does not count.
    """
    by_trial: dict[str, list[TimelineEvent]] = {}
    for event in sorted(timeline, key=lambda event: event.at):
        by_trial.setdefault(event.trial, []).append(event)
    sums = [_allocated_and_used(events) for events in by_trial.values()]
    allocated = sum(of_trial for of_trial, _ in sums)
    return sum(of_trial for _, of_trial in sums) / allocated if allocated else 1.0


def _allocated_and_used(events: Sequence[TimelineEvent]) -> tuple[float, float]:
    """Return the core seconds allocated to a trial, and those among them that it used."""
    usage = [event for event in events if event.kind is EventKind.USAGE]
    steps = [(event.at, _requested(event)) for event in events if event.kind in {EventKind.PHASE, EventKind.RESIZE}]
    allocated = used = 0.0
    for (start, cpu), (end, _) in pairwise([*steps, (events[-1].at, 0.0)]):
        allocated += cpu * (end - start)
        for before, event in pairwise([events[0], *usage]):
            overlap = min(end, event.at) - max(start, before.at)
            used += min(cpu, event.value or 0.0) * max(0.0, overlap)
    return allocated, used


def _requested(event: TimelineEvent) -> float:
    holds = event.kind is EventKind.RESIZE or event.phase in {"running", "moving"}
    return (event.cpu or 0.0) if holds else 0.0
