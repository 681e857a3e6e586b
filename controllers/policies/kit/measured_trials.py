"""What the reports of one trial tell of it: what a step costs, how many cores it can use, what its moves take. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from controllers.core.model import NodeName, Phase, Trial, TrialId
from controllers.policies.kit.device_paces import DevicePace, with_pace
from controllers.policies.kit.most_cores import UNUSED
from controllers.policies.kit.reports import LEAST_APART_S, LEAST_CORE_S, Report, report_of, scatter_of, waited_between
from controllers.policies.kit.scaling import NEWEST, CostOfStep, with_newest
from controllers.policies.kit.waits import LEAST_USED, busy_part

KEPT_REPORTS: Final = 24
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

    ``reports`` are those of the present attempt, thinned out, ``newest`` the last of all of them, and ``counted``
    the last that told of more CPU seconds than those before it, ``averaged_from`` the one from which its use of
    cores is averaged. ``cost`` is in core seconds per step, ``cores`` what it used meanwhile, ``scatter`` the
    standard deviation of the logarithm of the cost between two reports. ``most`` is how many cores the trial can
    use, None while it has used all that it was given, ``most_at`` when that was last told; ``used`` the most that
    it was seen to use. ``costs`` tells what a step cost under unlike conditions. ``running_since`` is when the
    present attempt was first seen to run. ``left`` is the newest report before a move, as of when the move was
    first seen; None once it is known what the move cost: ``move_seconds``. ``start_seconds`` is how long the first
    attempt that reported ran before it trained; None until that is known. ``busy`` is the part of its share that it
    used at most of late, or of a core if that is less; None while nobody knows. ``paces`` are those of a trial that
    holds devices, under unlike conditions.
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
    most_at: float = 0.0
    paces: tuple[DevicePace, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredNode:
    """The trials of a node with their requests, and since when they have been these.

    ``model`` is that of its devices. So many trials have been ``sharing`` each of them since ``sharing_since``.
    """

    requests: tuple[tuple[TrialId, float], ...] = ()
    since: float = 0.0
    model: str = ""
    sharing: float = 1.0
    sharing_since: float = 0.0


def measure_trial(
    trial: Trial,
    memo: MeasuredTrial,
    now: float,
    nodes: Mapping[NodeName, MeasuredNode],
    cores_of: Mapping[NodeName, float],
) -> MeasuredTrial:
    """Return what is known of ``trial`` after a look at it.

    Args:
        trial: As it is now.
        memo: What was known before.
        now: Seconds of the sweep's clock.
        nodes: What is on each node, and since when.
        cores_of: What each node gives its trials.
    """
    if trial.phase is Phase.MOVING and memo.left is None and memo.newest is not None:
        memo = replace(memo, left=replace(memo.newest, at=now))
    if trial.phase is Phase.RUNNING and trial.attempt != memo.attempt:
        # What lies between two attempts is no training: measuring begins again, and what was learnt stays.
        memo = replace(
            memo, attempt=trial.attempt, running_since=now, reports=(), newest=None, counted=None, averaged_from=None
        )
    progress = trial.progress
    report, last = report_of(progress, by_clock=bool(trial.devices.counts)), memo.newest
    if progress is None or report is None:
        return memo
    old = report.at <= (memo.running_since if last is None and memo.cost is not None else -math.inf)
    # Differences here and below: beside huge numbers, a sum of one and a tiny one is the huge one.
    if old or (last is not None and report.at - last.at < LEAST_APART_S):
        return memo
    apart = not memo.reports or report.step - memo.reports[-1].step >= max(1, report.step // KEPT_REPORTS)
    reports = (*memo.reports, report)[-KEPT_REPORTS:] if apart else memo.reports
    after = _with_cost(replace(memo, reports=reports, newest=report, steps_total=progress.steps_total))
    after = _with_pace(after, last, trial, nodes)
    after = _with_move(after)
    if memo.counted is not None and report.core_seconds - memo.counted.core_seconds < LEAST_CORE_S:
        return _with_quiet(after, trial, nodes)  # what it used will be told of later, if it used anything
    return _with_conditions(replace(after, counted=report), memo.counted, trial, nodes, cores_of)


def _with_pace(
    memo: MeasuredTrial, last: Report | None, trial: Trial, nodes: Mapping[NodeName, MeasuredNode]
) -> MeasuredTrial:
    """Return ``memo`` with the pace since ``last`` of a trial with devices, if as many shared them all the time."""
    newest, node = memo.newest, trial.node
    if not trial.devices.counts or newest is None or last is None or node is None or not trial.steady:
        return memo
    there = nodes.get(node)
    if there is None or there.sharing_since > last.at:
        return memo
    return replace(memo, paces=with_pace(memo.paces, last, newest, there.model, there.sharing))


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
    if report.step > last.step and entitled > 0 and not trial.devices.counts:
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
    if (waited_between(last, newest) or 0.0) > LEAST_USED:
        return memo  # others held it back
    return replace(memo, busy=0.0, cost=LEAST_USED * seconds / steps, cores=LEAST_USED)


def _busy(trial: Trial, since: Report, report: Report, entitled: float, part: float) -> float | None:
    """Return the part of the cores that it was ``entitled`` to, ``part`` of its node, which a trial used at most."""
    if trial.gang:
        return None  # its CPU seconds are those of all workers, wherever they are
    seconds = report.at - since.at
    most = (report.core_seconds - since.core_seconds) / seconds * (1 + min(1.0, JITTER_S / seconds))
    # What waits for a CPU does not wait for a GPU, a disk or a server.
    return busy_part(most + (waited_between(since, report) or 0.0), entitled, small=part < LARGE_SHARE)


def _with_use(memo: MeasuredTrial, since: Report, report: Report, entitled: float) -> MeasuredTrial:
    """Return ``memo`` with what the cores that it used from ``since`` to ``report`` tell of how many it can use.

    ``entitled`` are those that it could surely have used meanwhile. What it waited for, it could have used: others that
    take a node's cores do not make a trial one that cannot use more. Where nothing tells of waiting, others may have
    been in its way, so what is concluded then is never less than it has used before, and is tried again after a while.
    """
    seconds = report.at - since.at
    waited, doubt = waited_between(since, report), min(1.0, JITTER_S / seconds)
    used = (report.core_seconds - since.core_seconds) / seconds
    cores = used + (waited or 0.0)
    # Trials use whole cores where they have more than one: two of 2.9 does not show that three are too many.
    conclusive = entitled < 1 or entitled >= math.floor(cores + NEARLY_WHOLE) + 1
    most, surely = memo.most, (1 - doubt) * cores
    shown = max(memo.used, (1 - doubt) * used)
    if conclusive and cores < (UNUSED - doubt) * entitled:
        most = cores if most is None else (1 - NEWEST) * most + NEWEST * cores
        if waited is not None:  # it may be in another phase, such as one after its data were read
            shown = max((1 - doubt) * used, min(memo.used, (1 - NEWEST) * memo.used + NEWEST * cores))
        return replace(memo, most=max(most, shown), used=shown, most_at=report.at)
    if most is not None:
        most = max(most, surely)
    return replace(memo, most=most, used=shown)


def _with_cost(memo: MeasuredTrial) -> MeasuredTrial:
    """Return ``memo`` with the cost of a step over the newer half: the older half holds imports and warming up."""
    newest = memo.newest
    if newest is None:
        return memo
    half = (memo.reports[0].step + newest.step) / 2
    older = [report for report in memo.reports if report.step <= half]
    if not older:
        return memo  # its steps went back, as those of a program that begins its count again do
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
