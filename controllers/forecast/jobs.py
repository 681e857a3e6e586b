"""What is known of each trial of a sweep and of its nodes, as the jobs and rooms of the fluid model. Pure."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.core.ports import ComingTrial
from controllers.forecast.model import Job, ModelNode
from controllers.forecast.rooms import asked_of, node_of, rooms_of
from controllers.forecast.waiting import COMPUTES, Waits, free_cores, waits_of
from controllers.policies.kit.device_paces import (
    DevicePace,
    DeviceSpeeds,
)
from controllers.policies.kit.lengths import EstimateSource, Known
from controllers.policies.kit.measured_trials import MeasuredTrial
from controllers.policies.kit.reports import report_of
from controllers.policies.kit.waits import (
    LEAST_CORES,
    LEAST_USED,
    ONE_CORE,
    chance_of_waiting,
    surely_waits,
)
from controllers.policies.kit.work_left import (
    EndedTrial,
    SweepMeasurements,
    device_speeds_of,
    estimate_work,
    learnt_before,
    scaling_of,
)

LEAST_WEIGHT: Final = 2 / 1024
"""Cores that a request of nothing weighs: cpu.shares are never below 2, and 1024 of them are a core."""
USUAL_MOVES_S: Final = (5.0, 5.0)
"""Seconds of two moves before any was seen; the moves of the sweep are averaged with them."""
HELD_AFTER_S: Final = 10.0
"""A trial that could have come so long ago is held back until another ends."""
COST_SPREAD: Final = 0.05
"""Spread of what a coming step costs against the steps made: models, and other programs here, change meanwhile."""
STEP_SPREAD: Final = 0.3
"""Spread of what a single step costs, as a part of the mean."""
LEAST_LEFT: Final = 0.1
"""A trial that has not ended has at least this part of a step left."""
LATE_S: Final = 10.0
"""Seconds for which a trial without news is taken to go on as before; one and a half steps where these are longer."""
FIRST_SPREAD: Final = 0.2
"""Spread of what a step costs by a first report, which tells of imports and warming up as well."""
LEAST_OF_FIRST: Final = 0.2
"""Part of the CPU seconds of a first report that steps took at least."""
EVEN_SPREAD: Final = 0.41
"""Standard deviation of the difference of two numbers that lie evenly between 0 and 1."""
TINY: Final = 1e-3
"""Core seconds that a trial has left at least."""
HUGE: Final = 1e10
"""Core seconds that a trial has left at most: no trial takes a core three hundred years."""
_EXPLAINED: Final = frozenset({EstimateSource.PARAMETERS, EstimateSource.EARLIER})
"""What tells trials apart that have told nothing of their length."""
MOST_MOVE_S: Final = 600.0
LEAST_GIVEN: Final = 0.1


class _Common(NamedTuple):
    """What all trials have in common: the time, p of speed ~ cores ** p, and the core seconds of a start.

    ``free`` are the cores that each trial which may wait has while it computes.
    """

    now: float
    power: float
    startup: float
    free: Mapping[TrialId, float]


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A trial that has not ended, and what is known of it.

    ``weight`` is that of its share, in cores. Of its work (core seconds of a single core) ``done`` is done and ``left``
    is left, the latter with ``error``, the spread of its logarithm; ``left`` is None where it must be drawn.
    ``step`` is the work of one step, 0 while nobody knows it. ``startup`` comes before all of it. ``most`` is how many
    cores the trial can use; None while all that is known is how many it ``used`` at most. ``made`` is the part of its
    steps that it has made, ``others`` how many ran beside it while its steps were measured. ``elastic`` tells of a gang
    that may have more or fewer workers. ``waits`` tells how it waits rather than computes.
    """

    name: TrialId
    job: Job
    weight: float
    done: float = 0.0
    left: float | None = None
    error: float = 0.0
    step: float = 0.0
    startup: float = 0.0
    most: float | None = None
    used: float = 0.0
    made: float = 0.0
    others: int = 0
    elastic: bool = False
    waits: Waits = COMPUTES


@dataclass(frozen=True, slots=True)
class Whole:
    """A trial of known length: its steps and its work (core seconds of a single core) in all."""

    steps: float
    work: float
    waits: Waits = COMPUTES


@dataclass(frozen=True, slots=True)
class KnownSweep:
    """All trials that have not ended, in the order of submission, and all nodes that take trials, by name.

    ``totals`` are the lengths of trials that ended or tell them, those of earlier sweeps included; ``parts`` is how
    much of the steps that they told trials had made when they ended.
    ``contention`` is the part of its speed that each further trial takes from all on its node. ``given`` is the part of
    their cores that nodes give the trials of late: other programs may use the rest. ``start_s`` is how many seconds
    trials run before they train. Work of trials that hold devices is as on the fastest ones, alone. The rest is as in
    ``fluid.FluidModel``.
    """

    jobs: Sequence[KnownJob]
    rooms: Sequence[ModelNode]
    totals: Sequence[Whole]
    parts: Sequence[float]
    power: float
    contention: float
    calm_at: float
    move_s: float
    given: float
    start_s: float
    speeds: DeviceSpeeds


def known_sweep(
    snapshot: Snapshot,
    measured: SweepMeasurements,
    to_come: Iterable[ComingTrial],
    most_moves: int,
    *,
    takes_turns: bool = False,
) -> KnownSweep:
    """Return what is known of a sweep.

    Args:
        snapshot: What there is.
        measured: What the reports told so far, ``snapshot`` included.
        to_come: Trials that have not been submitted.
        most_moves: How often the policy moves a trial at most.
        takes_turns: Whether the policy lets trials share a device only where that gets more done.
    """
    scaling = scaling_of(measured)
    move_s = min(MOST_MOVE_S, statistics.fmean((*USUAL_MOVES_S, *measured.moves)))
    nodes = [node for node in snapshot.nodes if node.ready and node.supplied > 0]
    numbers = {node.name: number for number, node in enumerate(nodes)}
    trials = sorted(snapshot.unended, key=lambda trial: (trial.submitted_at, trial.id))
    together = Counter(trial.node for trial in trials if trial.live)
    startup = _startup(measured)
    common = _Common(snapshot.now, scaling.power, startup, free_cores(snapshot, measured))
    told, speeds = any(trial.parameters for trial in trials), device_speeds_of(measured, snapshot)
    guesses = estimate_work(snapshot, measured, scaling.power) if told else {}
    beside = _cores_beside_devices(trials, measured)
    jobs: list[KnownJob] = []
    totals: list[Whole] = []
    for trial in trials:
        node, memo = node_of(trial), measured.trials[trial.id]
        number, at = None if node is None else numbers.get(node), move_s if trial.phase is Phase.MOVING else 0.0
        cpu, memory, devices = asked_of(trial)
        job = Job(cpu, memory, number, at, max(0, most_moves - trial.moves), devices)
        known_job = _with_work(trial, job, memo, common)
        if trial.devices.counts:
            known_job = _on_the_fastest(known_job, _slower(node, memo, measured, speeds))
        if known_job.left is not None and memo.steps_total is not None:
            totals.append(
                Whole(min(HUGE, max(1.0, memo.steps_total)), known_job.done + known_job.left, known_job.waits)
            )
        elif told and guesses[trial.id].source in _EXPLAINED:
            guess = guesses[trial.id]
            work = guess.work
            if trial.devices.counts:  # these are seconds, on all the cores that it might be able to use
                work *= math.pow(beside / guess.most, scaling.power)
                known_job = replace(known_job, most=beside)
            known_job = replace(known_job, left=min(HUGE, max(TINY, work)), error=guess.spread)
        elastic = trial.min_workers < trial.max_workers
        jobs.append(replace(known_job, others=max(0, together[trial.node] - 1), elastic=elastic))
    submitted = {trial.id for trial in snapshot.trials}
    for coming in sorted(to_come, key=lambda coming: (coming.at, coming.id)):
        if coming.id not in submitted:
            due = coming.at - snapshot.now
            starts_at = None if due < -HELD_AFTER_S else max(0.0, due)
            job = Job(coming.cpu, coming.memory, None, starts_at, most_moves, coming.devices)
            jobs.append(KnownJob(coming.id, job, max(coming.cpu, LEAST_WEIGHT), startup=startup))
    return KnownSweep(
        jobs,
        rooms_of(nodes, trials, speeds.worth_sharing if takes_turns else math.inf),
        [
            *_learnt(learnt_before(snapshot, measured, scaling.power)),
            *_ended(measured.ended, scaling.power, speeds),
            *totals,
        ],
        [min(1.0, made) for trial in snapshot.trials if trial.phase.ended and (made := _made(trial)) is not None],
        scaling.power,
        scaling.contention,
        _calm_at([trial.submitted_at for trial in snapshot.trials], jobs, snapshot.now),
        move_s,
        _given(snapshot, measured),
        min(MOST_MOVE_S, statistics.median(measured.starts)) if measured.starts else 0.0,
        speeds,
    )


def _cores_beside_devices(trials: Sequence[Trial], measured: SweepMeasurements) -> float:
    """Return the cores that trials with devices use beside these, on the median: as many as those to come will."""
    seen = [memo.cores for trial in trials if trial.devices.counts and (memo := measured.trials[trial.id]).paces]
    ended = [trial.cores for trial in measured.ended if trial.paces]
    return max(LEAST_CORES, statistics.median((*seen, *ended))) if seen or ended else ONE_CORE


def _slower(node: NodeName | None, memo: MeasuredTrial, measured: SweepMeasurements, speeds: DeviceSpeeds) -> float:
    """Return how many times as long a trial's steps took as alone on the fastest devices, when they were measured."""
    if memo.paces:
        return _of_pace(memo.paces[-1], speeds)
    there = None if node is None else measured.nodes.get(node)
    return 1.0 if there is None or not there.model else speeds.seconds(there.model, there.sharing)


def _of_pace(pace: DevicePace, speeds: DeviceSpeeds) -> float:
    return speeds.seconds(pace.model, pace.sharing)


def _on_the_fastest(known: KnownJob, slower: float) -> KnownJob:
    """Return a trial with its work as alone on the fastest devices, whose steps were measured where they are slower."""
    left = None if known.left is None else known.left / slower
    return replace(known, done=known.done / slower, left=left, step=known.step / slower)


def _given(snapshot: Snapshot, measured: SweepMeasurements) -> float:
    """Return the part of their cores that nodes give, by trials that use less than their share and less than a core."""
    held_back = {
        trial.node
        for trial in snapshot.unended
        if trial.live
        and not trial.devices.counts  # one that does waits for them
        and (most := measured.trials[trial.id].most) is not None
        and most < ONE_CORE
        and not surely_waits(measured.trials[trial.id].busy)
    }
    used: dict[NodeName | None, float] = defaultdict(float)
    for trial in snapshot.unended:
        memo = measured.trials[trial.id]
        if trial.live and trial.node in held_back:
            used[trial.node] += memo.cores if memo.cost is not None else math.inf
    parts = [used[node.name] / node.supplied for node in snapshot.nodes if node.name in held_back and node.supplied > 0]
    known = [part for part in parts if part < math.inf]
    return min(1.0, max(LEAST_GIVEN, statistics.fmean(known))) if known else 1.0


def _made(trial: Trial) -> float | None:
    """Return the part of its steps that a trial has made, None where it has not told of so many."""
    progress = trial.progress
    if progress is None or progress.steps_total is None or progress.steps_total <= 0:
        return None
    return max(0.0, progress.step / progress.steps_total)


def _calm_at(submitted: Iterable[float], jobs: Iterable[KnownJob], now: float) -> float:
    """Return in how many seconds a policy will see that no more trials come (``arrivals.arriving_until``)."""
    coming = (now + (known_job.job.at or 0.0) for known_job in jobs if known_job.job.node is None)
    newest = sorted({*submitted, *coming})[-16:]
    if len(newest) < 3:  # noqa: PLR2004 - one gap says nothing of how long gaps are
        return 0.0
    return newest[-1] + 3 * (newest[-1] - newest[0]) / (len(newest) - 1) - now


def _ended(trials: Iterable[EndedTrial], power: float, speeds: DeviceSpeeds) -> Iterator[Whole]:
    for trial in trials:
        step, busy = trial.cost * math.pow(max(trial.cores, LEAST_CORES), power - 1), trial.busy
        if trial.paces:
            pace, busy = trial.paces[-1], None
            step = pace.seconds * math.pow(max(trial.cores, LEAST_CORES), power) / _of_pace(pace, speeds)
        work = min(HUGE, step * trial.steps)
        if work > 0:
            could = trial.cores / busy if busy else ONE_CORE
            yield Whole(trial.steps, work, waits_of(busy, step, trial.cost, trial.cores, min(ONE_CORE, could) ** power))


def _learnt(earlier: Iterable[Known]) -> Iterator[Whole]:
    for trial in earlier:
        if trial.steps and trial.cost:
            yield Whole(trial.steps, min(HUGE, max(TINY, trial.steps * trial.cost)))


def _with_work(trial: Trial, job: Job, memo: MeasuredTrial, common: _Common) -> KnownJob:
    """Return a trial with its work, as far as its reports tell."""
    now, power, startup, _ = common
    weight = max(trial.cpu * max(1, len(trial.nodes)), LEAST_WEIGHT)
    most = memo.most if memo.most is not None and memo.most >= ONE_CORE else None
    known = KnownJob(trial.id, job, weight, most=most, used=memo.used)
    memo = _by_clock(trial, memo)
    if trial.devices.counts and memo.cost is not None:
        known = replace(known, most=max(memo.cores, LEAST_CORES))  # more cores would not make the device faster
    newest = memo.newest or memo.left or report_of(trial.progress)  # a trial that has moved goes on from where it was
    if newest is None:
        return replace(known, startup=startup if memo.cost is None else 0.0)
    if newest.step < 1 or (newest.core_seconds <= 0 and memo.cost is None):
        return known
    cores = max(memo.cores, LEAST_CORES)
    speed, cost, error = cores**power, memo.cost, COST_SPREAD
    if cost is None:
        # One report tells of the steps and of what came before them.
        cost = max(newest.core_seconds - startup, LEAST_OF_FIRST * newest.core_seconds) / newest.step
        error = FIRST_SPREAD
    step = min(cost * speed / cores, HUGE / newest.step)
    waits = COMPUTES
    if memo.cost is not None and chance_of_waiting(memo.busy):
        step = min(max(step, LEAST_USED * memo.cost / memo.cores), HUGE / newest.step)
        waits = waits_of(memo.busy, step, memo.cost, memo.cores, common.free.get(trial.id, ONE_CORE) ** power)
        if surely_waits(memo.busy):
            speed = step * memo.cores / memo.cost
    known = replace(known, done=step * newest.step, step=step, error=error, waits=waits)
    if memo.steps_total is None:
        return known
    steps_left = max(0, memo.steps_total - newest.step)
    # A report tells nothing of what was done since. A trial that has been silent for long may have done nothing.
    since = min(now - newest.at, max(LATE_S, 1.5 * step / speed)) if trial.phase is Phase.RUNNING else 0.0
    tiny = TINY if waits is COMPUTES else 0.0
    left = min(HUGE, max(step * steps_left - max(0.0, since) * speed, LEAST_LEFT * step, tiny))
    lag = 0.0 if surely_waits(memo.busy) else _lag(memo)
    few_steps = STEP_SPREAD * math.sqrt(1 / newest.step + 1 / max(1, steps_left))
    return replace(known, left=left, error=math.hypot(error, few_steps, lag), made=_made(trial) or 0.0)


def _by_clock(trial: Trial, memo: MeasuredTrial) -> MeasuredTrial:
    """Return what is known of a trial; a step of one that holds devices costs what fills its time.

    So it takes that time wherever it has the cores that it was seen to use, and counts as waiting for nothing else.
    """
    if not trial.devices.counts:
        return memo
    if not memo.paces:
        return replace(memo, busy=None)
    return replace(memo, busy=None, cost=memo.paces[-1].seconds * max(memo.cores, LEAST_CORES))


def _lag(memo: MeasuredTrial) -> float:
    """Return how far the CPU seconds lag behind the steps, as a part of those that a step's cost was measured by."""
    counts = len({report.core_seconds for report in memo.reports})
    if counts == len(memo.reports) or memo.cost is None or memo.newest is None:
        return 0.0
    first, last = memo.reports[0], memo.newest
    apart = (last.at - first.at) / max(1, counts - 1)
    newer_half = max(1, last.step - first.step) / 2 * memo.cost
    return min(1.0, EVEN_SPREAD * apart * memo.cores / newer_half)


def _startup(measured: SweepMeasurements) -> float:
    """Return the core seconds that trials use before their first step (imports, data), on the median."""
    seconds = [
        memo.newest.core_seconds - memo.cost * memo.newest.step
        for memo in measured.trials.values()
        if memo.cost is not None and memo.newest is not None and memo.attempt == 1
    ]
    return min(HUGE, max(0.0, statistics.median(seconds))) if seconds else 0.0
