"""A workload that repeats a past sweep: work, curves, arrivals, placement, costs, and how sure that is."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.past_sweeps.cpu_use import CpuUse, counted, measured_upkeep, timed
from controllers.lab.simulation.past_sweeps.past_sweep import (
    MoveTimes,
    PastSweep,
    PastSweepError,
    PastTrial,
    common_trials,
)
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import NodeSpec, Report, Speedup, TrialSpec, Workload

_LEAST_WORK_S: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Testbed:
    """What a past sweep is simulated on: nodes, costs where nobody measured them, cores that a trial can use."""

    nodes: tuple[NodeSpec, ...]
    costs: Costs
    cores: float = 1.0

    def __post_init__(self) -> None:
        if not self.nodes:
            message = "the size of the nodes is not recorded: say what to simulate on, with --nodes and --cpus-per-node"
            raise PastSweepError(message)


@dataclass(frozen=True, slots=True)
class Recording:
    """What simulates a past sweep. ``spread`` is the relative standard deviation of each trial's work.

    ``first_nodes`` is empty where the nodes are not those that it ran on. ``assumptions`` are for people.
    """

    workload: Workload
    costs: Costs
    first_nodes: Mapping[TrialId, NodeName]
    spread: Mapping[TrialId, float]
    assumptions: tuple[str, ...]


def record(sweep: PastSweep, ground: Testbed, others: Sequence[PastSweep] = ()) -> Recording:
    """Rebuild ``sweep``.

    Args:
        sweep: What the work is taken from.
        ground: Where it is to run.
        others: The same sweep under other policies: how far their CPU seconds differ is the spread of the work, and
            their moves tell what a move costs.

    Raises:
        PastSweepError: There is nothing to rebuild; says why.
    """
    upkeep = _upkeep(sweep)
    spendings = _spendings(sweep, ground, upkeep)
    moves = [move for run in (sweep, *others) for move in run.moves]
    costs = _measured_costs(moves, spendings, ground.costs)
    trials = tuple(
        replace(_trial(trial, spent, costs.start_cpu_s, sweep, ground), upkeep=upkeep)
        for trial, spent in zip(sweep.trials, spendings, strict=True)
    )
    same = not sweep.nodes or {node.name for node in sweep.nodes} == {node.name for node in ground.nodes}
    pins = {trial.id: trial.first_node for trial in sweep.trials if same and trial.first_node is not None}
    spread, told = _spread(sweep, spendings, others)
    assumptions = (*_assumptions(sweep, ground, upkeep), _about_moves(len(moves), costs), told)
    return Recording(Workload(trials, ground.nodes), costs, pins, spread, assumptions)


def _upkeep(sweep: PastSweep) -> float:
    return measured_upkeep(sweep) if sweep.counted and sweep.began_epoch_s is not None else 0.0


def _spendings(sweep: PastSweep, ground: Testbed, upkeep: float) -> list[CpuUse]:
    if sweep.counted:
        return [counted(trial, upkeep, sweep.began_epoch_s or 0.0) for trial in sweep.trials]
    return timed(sweep, sum(node.cpu for node in ground.nodes), ground.cores)


def _measured_costs(moves: Sequence[MoveTimes], spendings: Sequence[CpuUse], base: Costs) -> Costs:
    costs = replace(base, start_cpu_s=statistics.median(spent.before_training for spent in spendings))
    if not moves:
        return costs
    return replace(
        costs,
        leave_s=statistics.median(move.leave_s for move in moves),
        next_attempt_s=max(0.0, statistics.median(move.next_attempt_s for move in moves) - base.start_s),
    )


def _trial(trial: PastTrial, spent: CpuUse, start_cpu_s: float, sweep: PastSweep, ground: Testbed) -> TrialSpec:
    start = min(start_cpu_s, spent.spent[0])
    reports = tuple(
        Report((at - start) / spent.cores, point.value) for at, point in zip(spent.spent, trial.objective, strict=True)
    )
    return TrialSpec(
        id=trial.id,
        submitted_at=trial.submitted_at,
        work_s=max((spent.total - start) / spent.cores, _LEAST_WORK_S),
        reports=reports,
        cpu=_fitting_request(sweep, ground) if trial.cpu is None else trial.cpu,
        speedup=Speedup.linear(spent.cores),
        direction=sweep.direction,
    )


def _fitting_request(sweep: PastSweep, ground: Testbed) -> float:
    """Return a request so small that all trials that ran at a time fit on the nodes."""
    changes = sorted([(t.submitted_at, 1) for t in sweep.trials] + [(t.completed_at, -1) for t in sweep.trials])
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    each = math.ceil(most / len(ground.nodes)) + 1
    return math.floor(min(node.cpu for node in ground.nodes) / each * 1000) / 1000


def _spread(
    sweep: PastSweep, spendings: Sequence[CpuUse], others: Sequence[PastSweep]
) -> tuple[dict[TrialId, float], str]:
    comparable = [other for other in others if other.counted] if sweep.counted else []
    shared = sorted(common_trials([sweep, *comparable])) if comparable else []
    if len(shared) > 1:
        upkeep = _upkeep(sweep)
        totals = [_totals(run, upkeep) for run in (sweep, *comparable)]
        logs = [[math.log(run[trial]) for run in totals] for trial in shared]
        sigma = math.sqrt(statistics.fmean(statistics.variance(of_trial) for of_trial in logs))
        told = f"the work of a trial varies by {sigma:.1%}, as between its {len(totals)} recorded runs"
        return {trial.id: sigma for trial in sweep.trials}, told
    spreads = {spent.trial: spent.spread for spent in spendings}
    median = statistics.median(spreads.values())
    return spreads, f"the work of a trial varies by {median:.1%} (median), as the cost of its steps did while it ran"


def _totals(sweep: PastSweep, upkeep: float) -> dict[TrialId, float]:
    """Return the core seconds of each trial's training."""
    spent = {trial.id: counted(trial, upkeep, sweep.began_epoch_s or 0.0) for trial in sweep.trials}
    return {name: max(of.total - of.before_training, _LEAST_WORK_S) for name, of in spent.items()}


def _assumptions(sweep: PastSweep, ground: Testbed, upkeep: float) -> list[str]:
    cores = sum(node.cpu for node in ground.nodes)
    told = []
    if any(node.supply for node in ground.nodes):
        told.append(
            "the nodes get as much of their cores as they got then, and all where they were empty: others took the rest"
        )
    if not sweep.counted:
        told.append(
            f"nobody counted CPU seconds: work is taken from timestamps, as if all that ran had shared {cores:g} cores "
            f"evenly, at most {ground.cores:g} each; waiting counts as work"
        )
    if sweep.nodes and [node.cpu for node in sweep.nodes] != [node.cpu for node in ground.nodes]:
        were = sum(node.cpu for node in sweep.nodes)
        told.append(
            f"it ran on {len(sweep.nodes)} nodes of {were:g} cores together, and is simulated on "
            f"{len(ground.nodes)} of {cores:g}"
        )
    if upkeep:
        told.append(f"logging takes {upkeep:.4f} cores of each trial all the time, as measured")
    if any(trial.cpu is None for trial in sweep.trials):
        told.append("CPU requests are unknown: small enough for all that ran at a time")
    return told


def _about_moves(seen: int, costs: Costs) -> str:
    gap_s = costs.leave_s + costs.next_attempt_s + costs.start_s + costs.restore_s
    measured = f"as in the {seen} that were seen (median)" if seen else "as measured elsewhere: none was seen"
    return f"a move interrupts a trial for {gap_s:.1f} s and {costs.start_cpu_s:.2f} CPU seconds, {measured}"
