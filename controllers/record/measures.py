"""What a timeline comes to by the measures of the papers whose policies it shows. Pure; seconds and cores."""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from controllers.core.goals import AskedGoals, reached
from controllers.core.model import Direction
from controllers.record.timeline import EventKind, TimelineEvent

_GAPS_IN_WINDOW: Final = 10


def times_to_target(
    timeline: Iterable[TimelineEvent], goals: Mapping[str, AskedGoals], direction: Direction
) -> dict[str, float]:
    """Return the seconds from each trial's submission to its first report past its target: TRADL's measure.

    Trials without a target, and those that never got there, are left out. A report counts when it was seen.
    """
    submitted: dict[str, float] = {}
    seconds_of: dict[str, float] = {}
    for event in timeline:
        submitted.setdefault(event.trial, event.at)
        target = goals[event.trial].target if event.trial in goals else None
        if target is None or event.kind is not EventKind.REPORT or event.value is None or event.trial in seconds_of:
            continue
        if reached(event.value, target, direction):
            seconds_of[event.trial] = event.at - submitted[event.trial]
    return seconds_of


def seconds_per_step(timeline: Iterable[TimelineEvent]) -> dict[str, float]:
    """Return the seconds that a step took on average, from the first report that was seen of a trial to the last."""
    spans = {name: (seen[-1][0] - seen[0][0], seen[-1][1] - seen[0][1]) for name, seen in _steps_seen(timeline).items()}
    return {name: seconds / steps for name, (seconds, steps) in spans.items() if steps > 0}


def at_pace_while_all_run(
    timeline: Iterable[TimelineEvent],
    goals: Mapping[str, AskedGoals],
    tolerance: float,
    *,
    window_s: float = 20.0,
    or_faster: bool = False,
) -> float | None:
    """Return how many trials keep to their time per step at a moment, on average while all that have one run.

    DQoES's measure as far as its abstract tells: it counts satisfied models among those that share a node, and its
    models (inference, in the paper's second version) do not end, as trials do.

    Args:
        timeline: Reports with their steps.
        goals: What was asked of each trial, by id.
        tolerance: Part of the time per step by which it may be missed.
        window_s: A step's time is measured from one report to the first that is at least so much later, in seconds,
            and ten times as long as reports are apart: they are told when they were seen.
        or_faster: Whether a trial that is faster than asked keeps to its time as well.

    Returns:
        A number of trials, or None where there was no moment when all of them ran.
    """
    seen = _steps_seen(timeline)
    asked = {name: goal.seconds_per_step for name, goal in goals.items() if goal.seconds_per_step is not None}
    if not asked or any(name not in seen for name in asked):
        return None
    start, end = max(seen[name][0][0] for name in asked), min(seen[name][-1][0] for name in asked)
    if end <= start:
        return None
    kept_s = (
        max(0.0, min(until, end) - max(since, start))
        for name, goal in asked.items()
        for since, until, took in _paces(seen[name], window_s)
        if took <= (1 + tolerance) * goal and (or_faster or took >= (1 - tolerance) * goal)
    )
    return sum(kept_s) / (end - start)


def _steps_seen(timeline: Iterable[TimelineEvent]) -> dict[str, list[tuple[float, int]]]:
    """Return when each trial's steps were seen, in seconds, and which."""
    reports: dict[str, list[tuple[float, int]]] = {}
    for event in timeline:
        if event.kind is EventKind.REPORT and event.step is not None:
            reports.setdefault(event.trial, []).append((event.at, event.step))
    return reports


def _paces(seen: Sequence[tuple[float, int]], window_s: float) -> Iterator[tuple[float, float, float]]:
    """Yield since when, until when (seconds), and how long a step took (seconds, infinite where none was made)."""
    gap_s = statistics.median([b - a for (a, _), (b, _) in pairwise(seen)])
    window_s = max(window_s, _GAPS_IN_WINDOW * gap_s)
    since, step = seen[0]
    for at, reached_step in seen[1:]:
        if at - since >= window_s or (at, reached_step) == seen[-1]:
            steps = reached_step - step
            yield since, at, (at - since) / steps if steps > 0 else math.inf
            since, step = at, reached_step


def satisfied(took: Mapping[str, float], goals: Mapping[str, AskedGoals], tolerance: float) -> tuple[str, ...]:
    """Return the trials whose steps took as long as they should, within ``tolerance`` of that."""
    return tuple(
        name
        for name, asked in goals.items()
        if (goal := asked.seconds_per_step) is not None and abs(took.get(name, math.inf) - goal) <= tolerance * goal
    )


def fast_enough(took: Mapping[str, float], goals: Mapping[str, AskedGoals], tolerance: float) -> tuple[str, ...]:
    """Return the trials whose steps took no longer than they should, within ``tolerance`` of that.

    Shares are soft: a trial that has its node to itself may well be faster than it was asked to be.
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
    holds = event.kind is EventKind.RESIZE or event.phase in {"running", "moving", "suspending", "stopping"}
    return (event.cpu or 0.0) * max(1, len(event.places)) if holds else 0.0


def utilisation(timeline: Iterable[TimelineEvent], cores: float) -> float:
    """Return the part of all nodes' ``cores`` that trials used on average, from the first event to the last.

    Workers that wait for each other, or for the network, use none.
    """
    since: dict[str, float] = {}
    used = first = last = 0.0
    for number, event in enumerate(sorted(timeline, key=lambda event: event.at)):
        first, last = first if number else event.at, event.at
        begun = since.setdefault(event.trial, event.at)
        if event.kind is EventKind.USAGE:
            used += (event.value or 0.0) * (event.at - begun)
            since[event.trial] = event.at
    return used / (cores * (last - first)) if last > first else 0.0


def utilisation_variance(timeline: Iterable[TimelineEvent], cores: Mapping[str, float]) -> float:
    """Return the variance over the nodes of the part of their cores in use, on average over the time of the run.

    Args:
        timeline: What happened; the cores that trials used come from its usage events.
        cores: Cores of each node, idle ones included; at least one.
    """
    events = sorted(timeline, key=lambda event: event.at)
    changes = sorted(_changes(events, cores))
    used = dict.fromkeys(cores, 0.0)
    total = 0.0
    for (at, node, change), (until, *_) in pairwise([*changes, (events[-1].at, "", 0.0)] if changes else []):
        used[node] += change
        total += statistics.pvariance(used.values()) * (until - at)
    seconds = events[-1].at - events[0].at if events else 0.0
    return total / seconds if seconds > 0 else 0.0


def _changes(events: Iterable[TimelineEvent], cores: Mapping[str, float]) -> Iterator[tuple[float, str, float]]:
    """Yield when the part of a node's cores in use changes, and by how much."""
    since: dict[str, float] = {}
    for event in events:
        begun = since.setdefault(event.trial, event.at)
        if event.kind is not EventKind.USAGE:
            continue
        since[event.trial] = event.at
        for node in event.places if event.value else ():
            if node in cores:
                # Of several workers nobody tells how much each used: they do the same work.
                part = (event.value or 0.0) / len(event.places) / cores[node]
                yield begun, node, part
                yield event.at, node, -part
