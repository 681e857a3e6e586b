"""How much work each trial has left, and how many cores it can use: estimated from its reports. Pure.

The work left of a trial is the steps it has left times the core seconds of a step. The most cores that it can use show
whenever it leaves a part of its share unused. Speed may grow more slowly than cores, as cores ** p (``scaling``). Work
is then counted as on a single core, so that a trial on c cores does c ** p of it in a second.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.model import NodeName, Parameters, Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.lengths import Known, Lengths, Source
from controllers.policies.kit.most_cores import UNUSED, Most, Use, most_of_each
from controllers.policies.kit.reports import (
    LEAST_APART_S,
    LEAST_CORE_S,
    MOST_STEPS,
    Report,
    report_of,
    scatter_of,
)
from controllers.policies.kit.scaling import NEWEST, CostOfStep, Scaling, Spread, scaling, spread_over, with_newest
from controllers.policies.kit.waits import LEAST_USED, ONE_CORE, busy_part, used_while_waiting, work_of_step
from controllers.policies.kit.work_by_parameters import LEAST_SPREAD

KEPT_REPORTS: Final = 24
KEPT_ENDED: Final = 200
KEPT_MOVES: Final = 20
DRIFT: Final = 0.08
SCATTERED: Final = 2.0
"""The logarithm of a known trial's work is off by the first at its beginning, which falls to nothing at its end, and by
so many times its scatter: found in simulated sweeps whose steps come to cost more or less as time goes on."""
DEPENDABLE: Final = math.log(3)
"""An estimate that is within a factor of three two times of three is better to act on than none: found where trials
never tell how many steps they make."""
NEARLY_ALL: Final = 0.9
"""A trial that ended well after this part of the steps that it told has made all of them."""
JITTER_S: Final = 0.4
"""Seconds by which the time between two counts of CPU seconds may be off. Shares are kept to over tenths of a second
only, and steps end when they end: over a second, real trials seem to use a quarter more or fewer cores than they do."""
LARGE_SHARE: Final = 0.2
"""Part of a node from which on a share is kept to well enough to tell that a trial cannot use all of it: real trials
that were given a twentieth of a busy node got half of that."""
QUIET_S: Final = 15.0
"""Seconds of steps without any more CPU seconds that tell of a trial which waits: some tell theirs every 10 s only."""
USE_OVER_S: Final = 20.0
"""Seconds over which a trial's use of cores is averaged at most, while its share and its neighbours stay the same."""
NEARLY_WHOLE: Final = 0.05


@dataclass(frozen=True, slots=True)
class MeasuredTrial:
    """What the reports of a trial told.

    ``reports`` are those of the present attempt, thinned out, ``newest`` the last of all of them, and ``counted`` the
    last that told of more CPU seconds than those before it, ``averaged_from`` the one from which its use of cores is
    averaged. ``cost`` is in core seconds per step, ``cores`` what it used meanwhile, ``scatter`` the standard deviation
    of the logarithm of the cost between two reports. ``most`` is how many cores the trial can use, None while it has
    used all that it was given; ``used`` the most that it was seen to use. ``costs`` tells what a step cost under unlike
    conditions. ``running_since`` is when the present attempt was first seen to run. ``left`` is the newest report
    before a move, as of when the move was first seen; None once it is known what the move cost: ``move_seconds``.
    ``start_seconds`` is how long the first attempt that reported ran before it trained; None until that is known.
    ``busy`` is the part of its share that it used at most of late, or of a core if that is less; None while nobody
    knows.
    """

    attempt: int = 0
    running_since: float = 0.0
    reports: tuple[Report, ...] = ()
    newest: Report | None = None
    counted: Report | None = None
    averaged_from: Report | None = None
    steps_total: int | None = None
    cost: float | None = None
    cores: float = 1.0
    scatter: float = 0.0
    most: float | None = None
    used: float = 0.0
    costs: tuple[CostOfStep, ...] = ()
    left: Report | None = None
    move_seconds: float | None = None
    start_seconds: float | None = None
    busy: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredNode:
    """The trials of a node with their requests, and since when they have been these."""

    requests: tuple[tuple[TrialId, float], ...] = ()
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class EndedTrial:
    """A trial that ended after so many ``steps``, with ``cost``, ``cores`` and ``busy`` as before its end.

    ``whole`` tells that these were all of its steps.
    """

    parameters: Parameters
    steps: int
    whole: bool
    cost: float
    cores: float
    busy: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of a sweep.

    ``ended`` holds the newest of the trials that ended, ``moves`` the seconds for which trials that moved did not
    train, ``starts`` those for which new trials ran before they trained. ``spread`` is that of trials that ended.
    """

    trials: Mapping[TrialId, MeasuredTrial] = field(default_factory=dict)
    nodes: Mapping[NodeName, MeasuredNode] = field(default_factory=dict)
    ended: tuple[EndedTrial, ...] = ()
    moves: tuple[float, ...] = ()
    spread: Spread = field(default_factory=Spread)
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
    source: Source
    worth_offering: float

    @property
    def known(self) -> bool:
        """Whether its own reports say what work it has left."""
        return self.source is Source.OWN

    @property
    def dependable(self) -> bool:
        """Whether its work is known well enough to hold others back for it."""
        return self.spread <= DEPENDABLE


def measured(snapshot: Snapshot, before: Measured) -> Measured:
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
    cores = {node.name: node.cpu for node in snapshot.nodes}
    trials = {
        trial.id: _measured_trial(trial, before.trials.get(trial.id, MeasuredTrial()), snapshot.now, nodes, cores)
        for trial in snapshot.unended
    }
    over = [trial for trial in snapshot.trials if trial.phase.ended and trial.id in before.trials]
    ended = tuple(one for trial in over if (one := _ended(trial, before.trials[trial.id])) is not None)
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
    return Measured(trials, nodes, kept, moves, spread, (*before.starts, *started)[-KEPT_MOVES:])


def scaling_of(known: Measured) -> Scaling:
    """Return how the speed of the sweep's trials depends on what they share, as far as is known."""
    return scaling(spread_over(known.spread, (memo.costs for memo in known.trials.values())))


def estimated(snapshot: Snapshot, known: Measured, power: float) -> dict[TrialId, Estimate]:
    """Return the estimate of every trial that has not ended.

    The length of a trial that is not known yet is guessed from the others of the sweep (``Lengths``); before any is
    known, all are taken for equal.
    """
    cores = most_cores(snapshot, known)
    seen = {trial.id: _known(trial, known.trials[trial.id], power) for trial in snapshot.unended}
    ended = [
        Known(one.parameters, one.steps if one.whole else None, work_of_step(one.cost, one.cores, one.busy, power))
        for one in known.ended
    ]
    lengths = Lengths([*ended, *seen.values()])
    found: dict[TrialId, Estimate] = {}
    for trial in snapshot.unended:
        most = _with_waits(cores[trial.id], trial, known.trials[trial.id])
        guess = lengths.left(seen[trial.id], _steps_done(trial))
        found[trial.id] = Estimate(trial, guess.left, most.cores, guess.spread, guess.source, most.worth_offering)
    return found


def most_cores(snapshot: Snapshot, known: Measured) -> dict[TrialId, Most]:
    """Return how many cores every trial that has not ended is taken to be able to use."""
    largest = max((node.cpu for node in snapshot.nodes), default=1.0)
    memos = [known.trials[trial.id] for trial in snapshot.unended]
    uses = [Use(trial.base_cpu, one.used, _most_used(one)) for trial, one in zip(snapshot.unended, memos, strict=True)]
    found = most_of_each(uses, largest)
    return {trial.id: most for trial, most in zip(snapshot.unended, found, strict=True)}


def _most_used(memo: MeasuredTrial) -> float | None:
    used = used_while_waiting(memo.cores, memo.busy)
    return memo.most if used is None else used


def _with_waits(most: Most, trial: Trial, memo: MeasuredTrial) -> Most:
    """Return ``most``, with a core worth offering to a trial that waits: what it computes, it computes at once."""
    if used_while_waiting(memo.cores, memo.busy) is None:
        return most
    return Most(most.cores, max(most.worth_offering, min(ONE_CORE, trial.base_cpu)))


def work_seen(known: Measured, estimates: Mapping[TrialId, Estimate], power: float) -> float:
    """Return the work of all trials that have been submitted so far, what they have left of it included."""
    done = sum(work_of_step(one.cost, one.cores, one.busy, power) * one.steps for one in known.ended)
    for name, one in estimates.items():
        memo = known.trials[name]
        done += work_of_step(memo.cost or 0.0, memo.cores, memo.busy, power) * _steps_done(one.trial)
    return done + sum(one.work for one in estimates.values())


def _measured_trial(
    trial: Trial,
    memo: MeasuredTrial,
    now: float,
    nodes: Mapping[NodeName, MeasuredNode],
    cores_of: Mapping[NodeName, float],
) -> MeasuredTrial:
    if trial.phase is Phase.MOVING and memo.left is None and memo.newest is not None:
        memo = replace(memo, left=replace(memo.newest, at=now))
    if trial.phase is Phase.RUNNING and trial.attempt != memo.attempt:
        # What lies between two attempts is no training: measuring begins again, and what was learnt stays.
        memo = replace(
            memo, attempt=trial.attempt, running_since=now, reports=(), newest=None, counted=None, averaged_from=None
        )
    progress = trial.progress
    report, last = report_of(progress), memo.newest
    if progress is None or report is None:
        return memo
    old = report.at <= (memo.running_since if last is None and memo.cost is not None else -math.inf)
    # Differences here and below: beside huge numbers, a sum of one and a tiny one is the huge one.
    if old or (last is not None and report.at - last.at < LEAST_APART_S):
        return memo
    apart = not memo.reports or report.step - memo.reports[-1].step >= max(1, report.step // KEPT_REPORTS)
    reports = (*memo.reports, report)[-KEPT_REPORTS:] if apart else memo.reports
    after = _with_cost(replace(memo, reports=reports, newest=report, steps_total=progress.steps_total))
    after = _with_move(after)
    if memo.counted is not None and report.core_seconds - memo.counted.core_seconds < LEAST_CORE_S:
        return _with_quiet(after, trial, nodes)  # what it used will be told of later, if it used anything
    return _with_conditions(replace(after, counted=report), memo.counted, trial, nodes, cores_of)


def _with_conditions(
    memo: MeasuredTrial,
    last: Report | None,
    trial: Trial,
    nodes: Mapping[NodeName, MeasuredNode],
    cores_of: Mapping[NodeName, float],
) -> MeasuredTrial:
    """Return ``memo`` with what its CPU seconds since ``last`` tell, if the node's trials and shares were the same."""
    report, node = memo.counted, trial.node
    if report is None or node is None or node not in nodes or not trial.steady:
        return memo
    if last is None or nodes[node].since > last.at:
        return replace(memo, averaged_from=report)
    since = memo.averaged_from
    if since is None or report.at - since.at > USE_OVER_S:
        since = last
    requested = sum(cpu for _, cpu in nodes[node].requests)
    part = trial.cpu / requested if requested > 0 else 0.0
    entitled = cores_of[node] * part
    memo = replace(memo, averaged_from=since, busy=_busy(trial, since, report, entitled, part))
    memo = _with_use(memo, since, report, entitled if part >= LARGE_SHARE else 0.0)
    cores = (report.core_seconds - last.core_seconds) / (report.at - last.at)
    costs = memo.costs
    if report.step > last.step and entitled > 0:
        cost = (report.core_seconds - last.core_seconds) / (report.step - last.step)
        here = CostOfStep(math.log(entitled), len(nodes[node].requests) - 1, math.log(cores), math.log(cost))
        costs = with_newest(costs, here)
    return replace(memo, costs=costs)


def _with_quiet(memo: MeasuredTrial, trial: Trial, nodes: Mapping[NodeName, MeasuredNode]) -> MeasuredTrial:
    """Return ``memo`` as of a trial that waits, if it made steps for long without a hundredth of a CPU second."""
    last, newest, node = memo.counted, memo.newest, trial.node
    if last is None or newest is None or node is None or node not in nodes or nodes[node].since > last.at:
        return memo
    seconds, steps = newest.at - last.at, newest.step - last.step
    if trial.gang or not trial.steady or seconds < QUIET_S or steps < 1:
        return memo
    return replace(memo, busy=0.0, cost=LEAST_USED * seconds / steps, cores=LEAST_USED)


def _busy(trial: Trial, since: Report, report: Report, entitled: float, part: float) -> float | None:
    """Return the part of the cores that it was ``entitled`` to, ``part`` of its node, which a trial used at most."""
    if trial.gang:
        return None  # its CPU seconds are those of all workers, wherever they are
    seconds = report.at - since.at
    most = (report.core_seconds - since.core_seconds) / seconds * (1 + min(1.0, JITTER_S / seconds))
    return busy_part(most, entitled, small=part < LARGE_SHARE)


def _with_use(memo: MeasuredTrial, since: Report, report: Report, entitled: float) -> MeasuredTrial:
    """Return ``memo`` with what the cores that it used from ``since`` to ``report`` tell of how many it can use.

    ``entitled`` are those that it could surely have used meanwhile.
    """
    seconds = report.at - since.at
    cores, doubt = (report.core_seconds - since.core_seconds) / seconds, min(1.0, JITTER_S / seconds)
    # Trials use whole cores where they have more than one: two of 2.9 does not show that three are too many.
    conclusive = entitled < 1 or entitled >= math.floor(cores + NEARLY_WHOLE) + 1
    most, surely = memo.most, (1 - doubt) * cores
    if conclusive and cores < (UNUSED - doubt) * entitled:
        most = cores if most is None else (1 - NEWEST) * most + NEWEST * cores
    elif most is not None:
        most = max(most, surely)
    return replace(memo, most=most, used=max(memo.used, surely))


def _with_cost(memo: MeasuredTrial) -> MeasuredTrial:
    """Return ``memo`` with the cost of a step over the newer half: the older half holds imports and warming up."""
    newest = memo.newest
    if newest is None:
        return memo
    half = (memo.reports[0].step + newest.step) / 2
    older = [report for report in memo.reports if report.step <= half]
    if not older:
        return memo  # its steps went back, as those of a program that begins to count anew do
    base = max(older, key=lambda report: report.step)
    steps, seconds = newest.step - base.step, newest.at - base.at
    spent = newest.core_seconds - base.core_seconds
    if steps <= 0 or seconds < LEAST_APART_S or spent < LEAST_CORE_S:
        return memo
    return replace(memo, cost=spent / steps, cores=spent / seconds, scatter=scatter_of(memo.reports))


def _with_move(memo: MeasuredTrial) -> MeasuredTrial:
    """Return ``memo`` with what its move or start cost, once the second report tells how quickly it trains since."""
    first = memo.reports[0]
    if memo.newest is None or memo.newest.step <= first.step:
        return memo
    seconds_per_step = (memo.newest.at - first.at) / (memo.newest.step - first.step)
    if memo.left is None and memo.start_seconds is None and memo.move_seconds is None:
        trained = (first.step + 1) * seconds_per_step
        return replace(memo, start_seconds=max(0.0, first.at - memo.running_since - trained))
    if memo.left is None:
        return memo
    training = max(0, first.step - memo.left.step) * seconds_per_step
    return replace(memo, left=None, move_seconds=max(0.0, first.at - memo.left.at - training))


def _ended(trial: Trial, memo: MeasuredTrial) -> EndedTrial | None:
    """Return what is kept of a trial that ended; None where nobody knows what it cost."""
    if memo.cost is None:
        return None
    steps, whole = _steps_done(trial), trial.phase is Phase.SUCCEEDED
    if whole and memo.steps_total is not None and steps >= NEARLY_ALL * memo.steps_total:
        steps = min(memo.steps_total, MOST_STEPS)  # the last reports may come late, or count from 0
    return EndedTrial(trial.parameters, steps, whole and steps > 0, memo.cost, memo.cores, memo.busy)


def _steps_done(trial: Trial) -> int:
    return 0 if trial.progress is None else min(max(trial.progress.step, 0), MOST_STEPS)


def _known(trial: Trial, memo: MeasuredTrial, power: float) -> Known:
    told = None if trial.progress is None else trial.progress.steps_total
    steps = None if told is None or told <= 0 else min(told, MOST_STEPS)
    if memo.cost is None:
        return Known(trial.parameters, steps)
    ahead = 1 - min(1.0, _steps_done(trial) / steps) if steps else 1.0
    spread = math.hypot(LEAST_SPREAD + DRIFT * ahead, SCATTERED * memo.scatter)
    return Known(trial.parameters, steps, work_of_step(memo.cost, memo.cores, memo.busy, power), spread)
