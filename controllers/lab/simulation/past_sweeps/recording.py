"""A workload that repeats a past sweep: work, curves, arrivals, placement, costs, and how sure that is."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.past_sweeps.cpu_use import PastCpuUse, count_use, measure_upkeep, use_by_time
from controllers.lab.simulation.past_sweeps.past_sweep import (
    MoveTimes,
    PastSweep,
    PastSweepError,
    PastTrial,
    common_trials,
)
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, Speedup, TrialSpec, WorkerExchange, Workload

_LEAST_WORK_S: Final = 1e-3


@dataclass(frozen=True, slots=True)
class TargetCluster:
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


def record(sweep: PastSweep, target: TargetCluster, others: Sequence[PastSweep] = ()) -> Recording:
    """Rebuild ``sweep``.

    Args:
        sweep: What the work is taken from.
        target: Where it is to run.
        others: The same sweep under other policies: how far their CPU seconds differ is the spread of the work, and
            their moves tell what a move costs.

    Raises:
        PastSweepError: There is nothing to rebuild; says why.
    """
    upkeep = measure_upkeep(sweep) if sweep.counted and sweep.began_epoch_s is not None else 0.0
    if sweep.counted:
        uses = [count_use(trial, upkeep, sweep.began_epoch_s or 0.0) for trial in sweep.trials]
    else:
        uses = use_by_time(sweep, sum(node.cpu for node in target.nodes), target.cores)
    moves = [move for run in (sweep, *others) for move in run.moves]
    costs = _measured_costs(moves, uses, target.costs)
    trials = tuple(
        replace(_trial(trial, use, costs.start_cpu_s, sweep, target), upkeep=upkeep)
        for trial, use in zip(sweep.trials, uses, strict=True)
    )
    same = not sweep.nodes or {node.name for node in sweep.nodes} == {node.name for node in target.nodes}
    pins = {
        trial.id: trial.first_node
        for trial in sweep.trials
        if same and trial.first_node is not None and trial.workers[1] == 1
    }
    spread, about_spread = _spread(sweep, uses, others, upkeep)
    interrupted_s = costs.leave_s + costs.next_attempt_s + costs.start_s + costs.restore_s
    source = f"as in the {len(moves)} that were seen (median)" if moves else "as measured elsewhere: none was seen"
    about_moves = (
        f"a move interrupts a trial for {interrupted_s:.1f} s and {costs.start_cpu_s:.2f} CPU seconds, {source}"
    )
    assumptions = (*_assumptions(sweep, target, upkeep), about_moves, about_spread)
    return Recording(Workload(trials, target.nodes), costs, pins, spread, assumptions)


def _measured_costs(moves: Sequence[MoveTimes], uses: Sequence[PastCpuUse], base: Costs) -> Costs:
    costs = replace(base, start_cpu_s=statistics.median(use.before_training for use in uses))
    if not moves:
        return costs
    return replace(
        costs,
        leave_s=statistics.median(move.leave_s for move in moves),
        next_attempt_s=max(0.0, statistics.median(move.next_attempt_s for move in moves) - base.start_s),
    )


def _trial(trial: PastTrial, use: PastCpuUse, start_cpu_s: float, sweep: PastSweep, target: TargetCluster) -> TrialSpec:
    start = min(start_cpu_s * use.workers, use.spent[0])
    reports = tuple(
        CurvePoint((at - start) / use.cores, point.value) for at, point in zip(use.spent, trial.objective, strict=True)
    )
    return TrialSpec(
        id=trial.id,
        submitted_at=trial.submitted_at,
        work_s=max((use.total - start) / use.cores, _LEAST_WORK_S),
        reports=reports,
        cpu=_fitting_request(sweep, target) if trial.cpu is None else trial.cpu,
        speedup=Speedup.linear(use.cores),
        direction=sweep.direction,
        parameters=trial.parameters,
        min_workers=trial.workers[0],
        max_workers=trial.workers[1],
        exchange=WorkerExchange(step_s=max(use.typical_step / use.cores, _LEAST_WORK_S)),
    )


def _fitting_request(sweep: PastSweep, target: TargetCluster) -> float:
    """Return a request so small that all trials that ran at a time fit on the nodes."""
    changes = sorted([(t.submitted_at, 1) for t in sweep.trials] + [(t.completed_at, -1) for t in sweep.trials])
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    each = math.ceil(most / len(target.nodes)) + 1
    return math.floor(min(node.cpu for node in target.nodes) / each * 1000) / 1000


def _spread(
    sweep: PastSweep, uses: Sequence[PastCpuUse], others: Sequence[PastSweep], upkeep: float
) -> tuple[dict[TrialId, float], str]:
    """Return the relative standard deviation of each trial's work, and in words where it is from."""
    comparable = [other for other in others if other.counted] if sweep.counted else []
    shared = sorted(common_trials([sweep, *comparable])) if comparable else []
    if len(shared) > 1:
        trained = []
        for run in (sweep, *comparable):
            used = {trial.id: count_use(trial, upkeep, run.began_epoch_s or 0.0) for trial in run.trials}
            trained.append({name: max(use.total - use.before_training, _LEAST_WORK_S) for name, use in used.items()})
        logs = [[math.log(of_run[trial]) for of_run in trained] for trial in shared]
        sigma = math.sqrt(statistics.fmean(statistics.variance(of_trial) for of_trial in logs))
        about = f"the work of a trial varies by {sigma:.1%}, as between its {len(trained)} recorded runs"
        return {trial.id: sigma for trial in sweep.trials}, about
    spreads = {use.trial: use.spread for use in uses}
    median = statistics.median(spreads.values())
    return spreads, f"the work of a trial varies by {median:.1%} (median), as the cost of its steps did while it ran"


def _assumptions(sweep: PastSweep, target: TargetCluster, upkeep: float) -> list[str]:
    cores = sum(node.cpu for node in target.nodes)
    told = []
    if any(node.supply for node in target.nodes):
        told.append(
            "the nodes get as much of their cores as they got then, and all where they were empty: others took the rest"
        )
    if not sweep.counted:
        told.append(
            f"nobody counted CPU seconds: work is taken from timestamps, as if all that ran had shared {cores:g} cores "
            f"evenly, at most {target.cores:g} each; waiting counts as work"
        )
    if sweep.nodes and [node.cpu for node in sweep.nodes] != [node.cpu for node in target.nodes]:
        were = sum(node.cpu for node in sweep.nodes)
        told.append(
            f"it ran on {len(sweep.nodes)} nodes of {were:g} cores together, and is simulated on "
            f"{len(target.nodes)} of {cores:g}"
        )
    if upkeep:
        told.append(f"logging takes {upkeep:.4f} cores of each trial all the time, as measured")
    if any(trial.workers[1] > 1 for trial in sweep.trials):
        told.append(
            "trials may have as many workers as they were seen to have, who tell each other nothing that takes long"
        )
    if any(trial.cpu is None for trial in sweep.trials):
        told.append("CPU requests are unknown: small enough for all that ran at a time")
    return told
