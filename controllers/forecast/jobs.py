"""What is known of each trial of a sweep, as the jobs and rooms of the fluid model. Pure."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.core.ports import ComingTrial
from controllers.forecast.fluid import Job, Room
from controllers.policies.kit.work_left import Estimate, Measured, MeasuredTrial, estimated

LEAST_WEIGHT: Final = 2 / 1024
"""Cores that a request of nothing weighs: cpu.shares are never below 2, and 1024 of them are a core."""
MOVE_S: Final = 10.0
"""Seconds for which a trial that moves does not train."""
HELD_AFTER_S: Final = 10.0
"""A trial that could have come so long ago is held back until another ends."""
COST_SPREAD: Final = 0.05
"""Spread of what the steps left cost against those made: models and whatever else runs change meanwhile."""
STEP_SPREAD: Final = 0.3
"""Spread of what a single step costs, as a part of the mean."""
LEAST_LEFT: Final = 0.1
"""Part of a step that is left at least of a trial that has not ended."""
LATE_S: Final = 10.0
"""Seconds, or time of one and a half steps, for which a trial without news is taken to go on as before."""
TINY: Final = 1e-3


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A trial that has not ended, and what is known of it.

    ``weight`` is that of its share in cores. Of its work (core seconds of a single core) ``done`` is done and ``left``
    is left, the latter with ``error``, the spread of its logarithm; ``left`` is None where it must be drawn. ``most``
    is how many cores the trial can use, None while only the most is known that it ``used``. ``startup`` is what it
    will need before its first step.
    """

    name: TrialId
    job: Job
    weight: float
    done: float = 0.0
    left: float | None = None
    error: float = 0.0
    most: float | None = None
    used: float = 0.0
    startup: float = 0.0


def rooms_of(snapshot: Snapshot) -> list[Room]:
    """Return the nodes that take trials, by name."""
    cpu = {node.name: node.cpu for node in snapshot.nodes}
    memory = {node.name: node.memory for node in snapshot.nodes}
    for trial in snapshot.unended:
        node = _node_of(trial)
        if node in cpu:
            cpu[node] -= trial.base_cpu * trial.workers
            memory[node] -= trial.memory * trial.workers
    return [Room(node.cpu, cpu[node.name], memory[node.name]) for node in snapshot.nodes if node.ready and node.cpu > 0]


def known_jobs(
    snapshot: Snapshot, measured: Measured, to_come: Iterable[ComingTrial], power: float, most_moves: int
) -> list[KnownJob]:
    """Return every trial that has not ended, in the order of submission; those that are to come are the last.

    Args:
        snapshot: What there is.
        measured: What the reports told so far, ``snapshot`` included.
        to_come: Trials that have not been submitted.
        power: p of speed ~ cores ** p.
        most_moves: How often the policy moves a trial at most.
    """
    nodes = [node.name for node in snapshot.nodes if node.ready and node.cpu > 0]
    numbers = {name: number for number, name in enumerate(nodes)}
    estimates = estimated(snapshot, measured, power)
    startup = _startup(measured)
    found = []
    for trial in sorted(snapshot.unended, key=lambda trial: (trial.submitted_at, trial.id)):
        node = _node_of(trial)
        job = Job(
            trial.base_cpu * trial.workers,
            trial.memory * trial.workers,
            None if node is None else numbers.get(node),
            MOVE_S if trial.phase is Phase.MOVING else 0.0,
            max(0, most_moves - trial.moves),
        )
        found.append(_known_job(job, estimates[trial.id], measured.trials[trial.id], snapshot.now, power, startup))
    submitted = {trial.id for trial in snapshot.trials}
    for coming in sorted(to_come, key=lambda coming: (coming.at, coming.id)):
        if coming.id not in submitted:
            at = coming.at - snapshot.now
            job = Job(coming.cpu, coming.memory, None, None if at < -HELD_AFTER_S else max(0.0, at), most_moves)
            found.append(KnownJob(coming.id, job, max(coming.cpu, LEAST_WEIGHT), startup=startup))
    return found


def _node_of(trial: Trial) -> NodeName | None:
    return trial.moving_to if trial.phase is Phase.MOVING and trial.moving_to else trial.node


def _known_job(job: Job, one: Estimate, memo: MeasuredTrial, now: float, power: float, startup: float) -> KnownJob:
    trial, newest = one.trial, memo.newest
    weight = max(trial.cpu * max(1, len(trial.nodes)), LEAST_WEIGHT)
    known = KnownJob(trial.id, job, weight, one.done, most=memo.most, used=memo.used)
    if newest is None:
        return replace(known, startup=startup)
    if not one.known or memo.steps_total is None:
        return known
    step, speed = one.done / max(1, newest.step), memo.cores**power
    # What it has done since its newest report is not in it; but a trial that has gone silent may have done nothing.
    since = min(now - newest.at, max(LATE_S, 1.5 * step / speed)) if trial.phase is Phase.RUNNING else 0.0
    steps_left = max(1, memo.steps_total - newest.step)
    return replace(
        known,
        left=max(one.work - since * speed, LEAST_LEFT * step, TINY),
        error=math.hypot(COST_SPREAD, STEP_SPREAD * math.sqrt(1 / max(1, newest.step) + 1 / steps_left)),
    )


def _startup(measured: Measured) -> float:
    """Return the core seconds that trials use before their first step (imports, data), on the median."""
    found = [
        memo.newest.core_seconds - memo.cost * memo.newest.step
        for memo in measured.trials.values()
        if memo.cost is not None and memo.newest is not None and memo.attempt == 1
    ]
    return max(0.0, statistics.median(found)) if found else 0.0
