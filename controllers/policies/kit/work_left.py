"""How much work each trial has left, and how many cores it can use: estimated from its reports. Pure.

The work left of a trial is the steps it has left times the core seconds of a step. The most cores that it can use show
whenever it leaves a part of its share unused. Speed may grow more slowly than cores, as cores ** p (``scaling``). Work
is then counted as on a single core, so that a trial on c cores does c ** p of it in a second.

A trial that holds devices goes by the clock: its step takes the seconds that it takes, whatever CPU it uses meanwhile.
They are counted as alone on a device of the fastest model (``device_paces``), and as work of the cores that it can use,
so that they end up as the same seconds. Trials that hold unlike devices tell nothing of each other's lengths.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import NodeName, Parameters, Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.device_paces import (
    DevicePace,
    DeviceSpeeds,
    Seen,
    device_speeds,
    model_of,
    shares_held,
    sharing_on,
)
from controllers.policies.kit.earlier_lengths import believed_earlier
from controllers.policies.kit.lengths import EstimateSource, Known, Lengths
from controllers.policies.kit.measured_trials import MeasuredNode, MeasuredTrial, measure_trial
from controllers.policies.kit.most_cores import GROWTH, Most, Use, most_of_each
from controllers.policies.kit.reports import (
    MOST_STEPS,
)
from controllers.policies.kit.scaling import Scaling, ScalingSums, scaling, spread_over
from controllers.policies.kit.waits import LEAST_USED, MOST_COST, ONE_CORE, used_while_waiting, work_of_step
from controllers.policies.kit.work_by_parameters import LEAST_SPREAD

KEPT_ENDED: Final = 200
KEPT_MOVES: Final = 20
DRIFT: Final = 0.08
"""Error of the logarithm of a known trial's work at its beginning; it falls to nothing at the trial's end. Found in
simulated sweeps whose steps come to cost more or less as time goes on."""
SCATTERED: Final = 2.0
"""Error of the same logarithm, as a multiple of the trial's scatter. Found in the same sweeps."""
DEPENDABLE: Final = math.log(3)
"""Greatest spread of an estimate to act on: two times of three it is within a factor of three. Such an estimate is
better than none, as sweeps show whose trials never tell how many steps they make."""
NEARLY_ALL: Final = 0.9
"""A trial that succeeds after this part of the steps that it told has made all of them."""
BELIEVED_S: Final = 60.0
"""After so many seconds a trial is tried again: it may use more by now, where nothing tells of others in its way."""


@dataclass(frozen=True, slots=True)
class EndedTrial:
    """A trial that ended after so many ``steps``, with ``cost``, ``cores`` and ``busy`` as before its end.

    ``whole`` tells that these were all of its steps. ``paces`` are those of one that held ``devices``.
    """

    parameters: Parameters
    steps: int
    whole: bool
    cost: float
    cores: float
    busy: float | None = None
    devices: Devices = NO_DEVICES
    paces: tuple[DevicePace, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepMeasurements:
    """What is known of a sweep.

    ``ended`` holds the newest of the trials that ended, ``moves`` the seconds for which trials that moved did not
    train, ``starts`` those for which new trials ran before they trained. ``spread`` is that of trials that ended.
    """

    trials: Mapping[TrialId, MeasuredTrial] = field(default_factory=dict)
    nodes: Mapping[NodeName, MeasuredNode] = field(default_factory=dict)
    ended: tuple[EndedTrial, ...] = ()
    moves: tuple[float, ...] = ()
    spread: ScalingSums = field(default_factory=ScalingSums)
    starts: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A trial with the ``work`` it has left and the ``most`` cores it can use.

    ``worth_offering`` are the cores that it may be able to use, as far as it has not shown that they are too many.
    ``spread`` is the standard deviation of the logarithm of its work, ``source`` what that rests on.
    """

    trial: Trial
    work: float
    most: float
    spread: float
    source: EstimateSource
    worth_offering: float

    @property
    def known(self) -> bool:
        """Whether its own reports say what work it has left."""
        return self.source is EstimateSource.OWN

    @property
    def dependable(self) -> bool:
        """Whether its work is known well enough to hold others back for it."""
        return self.spread <= DEPENDABLE


def measure_sweep(snapshot: Snapshot, before: SweepMeasurements) -> SweepMeasurements:
    """Return what is known after a look at ``snapshot``; only of trials that have not ended."""
    requests: dict[NodeName, list[tuple[TrialId, float]]] = {node.name: [] for node in snapshot.nodes}
    for trial in snapshot.unended:
        for node in sorted(set(trial.nodes)) if trial.live else ():
            if node in requests:
                requests[node].append((trial.id, trial.cpu * trial.nodes.count(node)))
    nodes: dict[NodeName, MeasuredNode] = {}
    for name, on_it in requests.items():
        known = before.nodes.get(name)
        same = known is not None and known.requests == tuple(on_it)
        nodes[name] = known if known is not None and same else MeasuredNode(tuple(on_it), snapshot.now)
    nodes = _with_devices(snapshot, nodes, before)
    cores = {node.name: node.supplied for node in snapshot.nodes}
    trials = {
        trial.id: measure_trial(trial, before.trials.get(trial.id, MeasuredTrial()), snapshot.now, nodes, cores)
        for trial in snapshot.unended
    }
    over = [trial for trial in snapshot.trials if trial.phase.ended and trial.id in before.trials]
    ended = tuple(
        summary for trial in over if (summary := _summarise_ended(trial, before.trials[trial.id])) is not None
    )
    moved = tuple(
        memo.move_seconds
        for name, memo in trials.items()
        if memo.move_seconds is not None and memo.left is None and name in before.trials and before.trials[name].left
    )
    started = tuple(
        memo.start_seconds
        for name, memo in trials.items()
        if memo.start_seconds is not None and (name not in before.trials or before.trials[name].start_seconds is None)
    )
    kept, moves = (*before.ended, *ended)[-KEPT_ENDED:], (*before.moves, *moved)[-KEPT_MOVES:]
    spread = spread_over(before.spread, (before.trials[trial.id].costs for trial in over))
    return SweepMeasurements(trials, nodes, kept, moves, spread, (*before.starts, *started)[-KEPT_MOVES:])


def _with_devices(
    snapshot: Snapshot, nodes: dict[NodeName, MeasuredNode], before: SweepMeasurements
) -> dict[NodeName, MeasuredNode]:
    """Return ``nodes`` with what their devices are, and how many trials share each, and since when."""
    held: dict[NodeName, int] = {}
    there = {node.name: node for node in snapshot.nodes}
    for trial in snapshot.unended:
        for name in trial.nodes if trial.live and trial.devices.counts else ():
            if name in there:
                held[name] = held.get(name, 0) + shares_held(trial.devices, there[name].replicas)
    for node in snapshot.nodes:
        if node.name in held:
            sharing, known = sharing_on(node, held[node.name]), before.nodes.get(node.name)
            same = known is not None and known.model and known.sharing == sharing
            since = known.sharing_since if known is not None and same else snapshot.now
            nodes[node.name] = replace(nodes[node.name], model=model_of(node), sharing=sharing, sharing_since=since)
    return nodes


def device_speeds_of(known: SweepMeasurements, snapshot: Snapshot) -> DeviceSpeeds:
    """Return what the sweep's trials tell of devices: how fast each model is, and what sharing one costs."""
    ended = (Seen(trial.parameters, trial.paces) for trial in known.ended if trial.paces)
    running = (Seen(trial.parameters, paces) for trial in snapshot.unended if (paces := known.trials[trial.id].paces))
    return device_speeds((*ended, *running))


def scaling_of(known: SweepMeasurements) -> Scaling:
    """Return how the speed of the sweep's trials depends on what they share, as far as is known."""
    return scaling(spread_over(known.spread, (memo.costs for memo in known.trials.values())))


def estimate_work(snapshot: Snapshot, known: SweepMeasurements, power: float) -> dict[TrialId, Estimate]:
    """Return the estimate of every trial that has not ended.

    The length of a trial that is not known yet is guessed from the others of the sweep (``Lengths``), and from what was
    learnt before; before any is known, all are taken for equal.
    """
    cores, speeds = most_cores(snapshot, known), device_speeds_of(known, snapshot)
    seen = {trial.id: _known(trial, known.trials[trial.id], power, speeds) for trial in snapshot.unended}
    own = _known_ended(known, power, speeds)
    for trial in snapshot.unended:
        own.setdefault(trial.devices, []).append(seen[trial.id])
    lengths = {devices: Lengths(alike, believed_earlier(snapshot.earlier, alike)) for devices, alike in own.items()}
    estimates: dict[TrialId, Estimate] = {}
    for trial in snapshot.unended:
        most = _with_waits(cores[trial.id], trial, known.trials[trial.id])
        guess = lengths[trial.devices].left(seen[trial.id], _steps_done(trial))
        work = guess.left
        if trial.devices.counts:
            work *= math.pow(most.cores, power)  # these are seconds
        estimates[trial.id] = Estimate(trial, work, most.cores, guess.spread, guess.source, most.worth_offering)
    return estimates


def learnt_before(snapshot: Snapshot, known: SweepMeasurements, power: float) -> list[Known]:
    """Return what trials of earlier sweeps tell of the lengths in this one, as far as they are believed by now."""
    speeds = device_speeds_of(known, snapshot)
    own = [alike for trials in _known_ended(known, power, speeds).values() for alike in trials]
    own += [_known(trial, known.trials[trial.id], power, speeds) for trial in snapshot.unended]
    return believed_earlier(snapshot.earlier, own)


def _known_ended(known: SweepMeasurements, power: float, speeds: DeviceSpeeds) -> dict[Devices, list[Known]]:
    """Return what is known of trials that ended, by the devices that they held."""
    ended: dict[Devices, list[Known]] = {}
    for trial in known.ended:
        steps = trial.steps if trial.whole else None
        cost: float | None = work_of_step(trial.cost, trial.cores, trial.busy, power)
        if trial.devices.counts:
            cost = speeds.alone(trial.paces)
        ended.setdefault(trial.devices, []).append(Known(trial.parameters, steps, cost))
    return ended


def doubt(estimates: Mapping[TrialId, Estimate]) -> dict[TrialId, Estimate]:
    """Return ``estimates`` where no limit is believed: each trial may be able to use more cores than it showed."""
    return {
        name: replace(estimate, most=max(GROWTH * estimate.most, estimate.worth_offering))
        for name, estimate in estimates.items()
    }


def most_cores(snapshot: Snapshot, known: SweepMeasurements) -> dict[TrialId, Most]:
    """Return how many cores every trial that has not ended is taken to be able to use."""
    largest = max((node.cpu for node in snapshot.nodes), default=1.0)
    memos = [known.trials[trial.id] for trial in snapshot.unended]
    uses = [
        Use(trial.base_cpu, memo.used, _most_used(memo), in_doubt=_in_doubt(memo, snapshot.now), threads=trial.threads)
        for trial, memo in zip(snapshot.unended, memos, strict=True)
    ]
    mosts = most_of_each(uses, largest)
    return {trial.id: most for trial, most in zip(snapshot.unended, mosts, strict=True)}


def _most_used(memo: MeasuredTrial) -> float | None:
    used = used_while_waiting(memo.cores, memo.busy)
    if used is None:
        return memo.most
    return max(used, memo.used)


def _in_doubt(memo: MeasuredTrial, now: float) -> bool:
    """Whether what a trial is taken to be able to use was told long ago, and others may have been in its way then."""
    unknown = memo.newest is not None and memo.newest.waited is None
    return unknown and memo.most is not None and now - memo.most_at > BELIEVED_S


def _with_waits(most: Most, trial: Trial, memo: MeasuredTrial) -> Most:
    """Return ``most``, with a core worth offering to a trial that waits: what it computes, it computes at once."""
    if used_while_waiting(memo.cores, memo.busy) is None:
        return most
    return Most(most.cores, max(most.worth_offering, min(ONE_CORE, trial.base_cpu)))


def work_seen(known: SweepMeasurements, estimates: Mapping[TrialId, Estimate], power: float) -> float:
    """Return the work of all trials that have been submitted so far, what they have left of it included."""
    done = sum(work_of_step(trial.cost, trial.cores, trial.busy, power) * trial.steps for trial in known.ended)
    done += sum(work_done(estimate.trial, known, power) for estimate in estimates.values())
    return done + sum(estimate.work for estimate in estimates.values())


def work_done(trial: Trial, known: SweepMeasurements, power: float) -> float:
    """Return the work that a trial that has not ended has done, as far as its reports tell."""
    memo = known.trials[trial.id]
    return _step_on_cores(memo, power) * _steps_done(trial)


def _step_on_cores(memo: MeasuredTrial, power: float) -> float:
    """Return the work of a trial's step; where it goes by the clock, as work of the cores that it was seen to use."""
    if memo.paces:
        return min(MOST_COST, memo.paces[-1].seconds * math.pow(max(LEAST_USED, memo.cores), power))
    return work_of_step(memo.cost or 0.0, memo.cores, memo.busy, power)


def _summarise_ended(trial: Trial, memo: MeasuredTrial) -> EndedTrial | None:
    """Return what is kept of a trial that ended; None where nobody knows what it cost."""
    cost = memo.cost
    if cost is None and memo.paces:
        cost = memo.paces[-1].seconds * memo.cores
    if cost is None:
        return None
    steps, whole = _steps_done(trial), trial.phase is Phase.SUCCEEDED
    if whole and memo.steps_total is not None and steps >= NEARLY_ALL * memo.steps_total:
        steps = min(memo.steps_total, MOST_STEPS)  # the last reports may come late, or count from 0
    return EndedTrial(
        trial.parameters, steps, whole and steps > 0, cost, memo.cores, memo.busy, trial.devices, memo.paces
    )


def _steps_done(trial: Trial) -> int:
    return 0 if trial.progress is None else min(max(trial.progress.step, 0), MOST_STEPS)


def _known(trial: Trial, memo: MeasuredTrial, power: float, speeds: DeviceSpeeds) -> Known:
    told = None if trial.progress is None else trial.progress.steps_total
    steps = None if told is None or told <= 0 else min(told, MOST_STEPS)
    cost = _cost_of_step(trial, memo, power, speeds)
    if cost is None:
        return Known(trial.parameters, steps)
    ahead = 1 - min(1.0, _steps_done(trial) / steps) if steps else 1.0
    spread = math.hypot(LEAST_SPREAD + DRIFT * ahead, SCATTERED * memo.scatter)
    return Known(trial.parameters, steps, cost, spread)


def _cost_of_step(trial: Trial, memo: MeasuredTrial, power: float, speeds: DeviceSpeeds) -> float | None:
    """Return the work of a step, or the seconds of one alone on the fastest devices; None while nobody knows."""
    if trial.devices.counts:
        return speeds.alone(memo.paces)
    return None if memo.cost is None else work_of_step(memo.cost, memo.cores, memo.busy, power)
