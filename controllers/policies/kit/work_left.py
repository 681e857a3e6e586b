"""How much work each trial has left, and how many cores it can use: estimated from its reports. Pure.

The work left of a trial is the steps it has left times the core seconds of a step. The most cores that it can use show
whenever it leaves a part of its share unused. Speed may grow more slowly than cores, as cores ** p: p shows in what a
step of the same trial costs on unlike shares. Work is then counted as on a single core, so that a trial on c cores does
c ** p of it in a second.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId

KEPT_REPORTS: Final = 24
KEPT_TOTALS: Final = 200
KEPT_COSTS: Final = 6
UNUSED: Final = 0.9
"""A trial that uses less than this part of what its weight entitles it to cannot use more."""
NEWEST: Final = 0.4
"""Weight of the newest measurement in a moving average."""
LIKE: Final = 0.15
"""Costs on shares of which the logarithms differ by less are of the same share: the newer one counts."""
DOUBT: Final = 0.5
"""Spread of shares (sum of squared logarithms) at which the trials change p by half of what they tell."""
LEAST_POWER: Final = 0.5
LEAST_CORES: Final = 0.05


@dataclass(frozen=True, slots=True)
class Report:
    """Step and core seconds (over all attempts) of a trial, ``at`` seconds of the sweep's clock."""

    at: float
    step: int
    core_seconds: float


@dataclass(frozen=True, slots=True)
class MeasuredTrial:
    """What the reports of a trial told.

    ``reports`` are those of the present attempt, thinned out, ``newest`` the last of all of them. ``cost`` is in core
    seconds per step, ``cores`` what it used meanwhile. ``most`` is how many cores the trial can use, None while it has
    used all that it was given; ``used`` the most that it was seen to use. ``costs`` holds pairs of logarithms: of the
    cores used, and of what a step cost then. ``running_since`` is when the present attempt was first seen to run.
    """

    attempt: int = 0
    running_since: float = 0.0
    reports: tuple[Report, ...] = ()
    newest: Report | None = None
    steps_total: int | None = None
    cost: float | None = None
    cores: float = 1.0
    most: float | None = None
    used: float = 0.0
    costs: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredNode:
    """The trials of a node with their requests, and since when they have been these."""

    requests: tuple[tuple[TrialId, float], ...] = ()
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of a sweep; ``totals`` holds the whole work (core seconds) of trials that ended."""

    trials: Mapping[TrialId, MeasuredTrial] = field(default_factory=dict)
    nodes: Mapping[NodeName, MeasuredNode] = field(default_factory=dict)
    totals: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A trial with the work that it has ``done``, the ``work`` it has left and the ``most`` cores it can use.

    ``known`` tells that its own reports say so. Otherwise the sweep's other trials stand in.
    """

    trial: Trial
    work: float
    most: float
    known: bool
    done: float = 0.0


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
    over = [before.trials[trial.id] for trial in snapshot.trials if trial.phase.ended and trial.id in before.trials]
    ended = tuple(_done(memo, 1.0) for memo in over if memo.cost is not None)
    return Measured(trials, nodes, (*before.totals, *ended)[-KEPT_TOTALS:])


def power_of(known: Measured) -> float:
    """Return p of speed ~ cores ** p, by the trials that were seen on unlike shares; 1 until they tell otherwise.

    The slope of the logarithm of a step's cost over that of the cores, within each trial, is 1 - p.
    """
    spread, covariance = DOUBT, 0.0
    for memo in known.trials.values():
        if len(memo.costs) > 1:
            mean_cores = statistics.fmean(cores for cores, _ in memo.costs)
            mean_cost = statistics.fmean(cost for _, cost in memo.costs)
            spread += sum((cores - mean_cores) ** 2 for cores, _ in memo.costs)
            covariance += sum((cores - mean_cores) * (cost - mean_cost) for cores, cost in memo.costs)
    return 1 - min(1 - LEAST_POWER, max(0.0, covariance / spread))


def estimated(snapshot: Snapshot, known: Measured, power: float) -> dict[TrialId, Estimate]:
    """Return the estimate of every trial that has not ended.

    A trial whose length is not known yet is taken for as long as the others of the sweep that are longer than it has
    run so far, on average (mean residual life); before any is known, all are taken for equal.
    """
    largest = max((node.cpu for node in snapshot.nodes), default=1.0)
    told = [memo.most for memo in known.trials.values() if memo.most is not None]
    usual_most = statistics.median(told) if told else largest
    left = {name: work for name, memo in known.trials.items() if (work := _left(memo, power)) is not None}
    totals = [*known.totals, *(_done(known.trials[name], power) + work for name, work in left.items())]
    found: dict[TrialId, Estimate] = {}
    for trial in snapshot.unended:
        memo = known.trials[trial.id]
        most = max(usual_most, memo.used) if memo.most is None else memo.most
        work = left.get(trial.id)
        done = _done(memo, power)
        guess = _residual(totals, done) if work is None else work
        found[trial.id] = Estimate(trial, guess, max(most, 1e-3), known=work is not None, done=done)
    return found


def _measured_trial(
    trial: Trial,
    memo: MeasuredTrial,
    now: float,
    nodes: Mapping[NodeName, MeasuredNode],
    cores_of: Mapping[NodeName, float],
) -> MeasuredTrial:
    if trial.phase is Phase.RUNNING and trial.attempt != memo.attempt:
        # What lies between two attempts is no training: measuring begins again, and what was learnt stays.
        memo = replace(memo, attempt=trial.attempt, running_since=now, reports=(), newest=None)
    progress = trial.progress
    if progress is None or progress.cpu_seconds is None:
        return memo
    report, last = Report(progress.at, progress.step, progress.cpu_seconds), memo.newest
    old = report.at <= (memo.running_since if last is None and memo.cost is not None else -math.inf)
    if old or (last is not None and report.at <= last.at):
        return memo
    apart = not memo.reports or report.step - memo.reports[-1].step >= max(1, report.step // KEPT_REPORTS)
    reports = (*memo.reports, report)[-KEPT_REPORTS:] if apart else memo.reports
    after = _with_cost(replace(memo, reports=reports, newest=report, steps_total=progress.steps_total))
    node = trial.node
    if last is None or node is None or node not in nodes or not trial.steady or nodes[node].since > last.at:
        return after  # shares were others for a part of the time between the two reports
    cores = (report.core_seconds - last.core_seconds) / (report.at - last.at)
    if cores <= 0:
        return after
    requested = sum(cpu for _, cpu in nodes[node].requests)
    entitled = cores_of[node] * trial.cpu / requested if requested > 0 else 0.0
    most = after.most
    if cores < UNUSED * entitled:
        most = cores if most is None else (1 - NEWEST) * most + NEWEST * cores
    elif most is not None:
        most = max(most, cores)
    costs = after.costs
    if report.step > last.step:
        here = math.log(cores), math.log((report.core_seconds - last.core_seconds) / (report.step - last.step))
        costs = (*(one for one in costs if abs(one[0] - here[0]) > LIKE), here)[-KEPT_COSTS:]
    return replace(after, most=most, used=max(after.used, cores), costs=costs)


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
    if steps <= 0 or seconds <= 0 or spent <= 0:
        return memo
    return replace(memo, cost=spent / steps, cores=spent / seconds)


def _left(memo: MeasuredTrial, power: float) -> float | None:
    if memo.cost is None or memo.steps_total is None or memo.newest is None:
        return None
    return _of_a_single_core(memo, power) * max(0, memo.steps_total - memo.newest.step)


def _done(memo: MeasuredTrial, power: float) -> float:
    return 0.0 if memo.newest is None else _of_a_single_core(memo, power) * memo.newest.step


def _of_a_single_core(memo: MeasuredTrial, power: float) -> float:
    """Return what a step would cost on a single core: more of them are less efficient where ``power`` is below 1."""
    return (memo.cost or 0.0) * math.pow(max(memo.cores, LEAST_CORES), power - 1)


def _residual(totals: Sequence[float], done: float) -> float:
    longer = [total - done for total in totals if total > done]
    if longer:
        return statistics.fmean(longer)
    return done / 2 if done else 1.0
