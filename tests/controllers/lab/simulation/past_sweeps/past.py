"""Past sweeps made up of simulated ones: what a record of them would tell."""

from collections.abc import Sequence
from dataclasses import replace

from controllers.core.model import Direction, NodeName, TrialId
from controllers.core.results import TrialResult
from controllers.lab.simulation.past_sweeps.past_sweep import Logged, PastSweep, PastTrial, Stay
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.policies import Default
from controllers.record.timeline import EventKind
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, TrialSpec, Workload

START_CPU_S = 0.5
EPOCH = 1_700_000_000.0
COSTS = replace(Costs.free(), start_cpu_s=START_CPU_S)
NODES = (NodeSpec(NodeName("node-1"), 0.5), NodeSpec(NodeName("node-2"), 0.5))


def trials(number: int = 6) -> tuple[TrialSpec, ...]:
    """Return trials of 10 to 60 lone seconds, one every five seconds, with ten reports for each second."""
    return tuple(_trial(f"t{n}", 10.0 * (n + 1), 5.0 * n) for n in range(number))


def _trial(name: str, work_s: float, at: float) -> TrialSpec:
    reports = tuple(CurvePoint(part / 10, 1.0 / part) for part in range(1, round(work_s * 10) + 1))
    return TrialSpec(TrialId(name), at, work_s, reports, 0.05)


def simulated(specs: Sequence[TrialSpec], nodes: Sequence[NodeSpec] = NODES) -> SimulatedRun:
    """Run these trials under the default policy."""
    return simulate(Scenario(Workload(tuple(specs), tuple(nodes)), COSTS), Default())


def past_sweep(specs: Sequence[TrialSpec], nodes: Sequence[NodeSpec] = NODES, *, counted: bool = True) -> PastSweep:
    """Return the record of these trials under the default policy."""
    run = simulated(specs, nodes)
    by_id = {spec.id: spec for spec in specs}
    return PastSweep(
        name="past",
        policy="default" if counted else None,
        direction=Direction.MINIMIZE,
        trials=tuple(
            _past_trial(by_id[TrialId(of.id)], of, _moments(run, by_id[TrialId(of.id)]), counted=counted)
            for of in run.result.trials
        ),
        nodes=tuple(replace(node, supply=()) for node in nodes) if counted else (),
        began_epoch_s=EPOCH,
    )


def _moments(run: SimulatedRun, spec: TrialSpec) -> list[float]:
    """Return when the trial made its reports, from the cores it had."""
    usage = [(e.at, e.value or 0.0) for e in run.timeline if e.kind is EventKind.USAGE and e.trial == spec.id]
    wanted = [START_CPU_S + report.work_s for report in spec.reports]
    moments: list[float] = []
    spent, since = 0.0, spec.submitted_at
    for until, cores in usage:
        while cores and len(moments) < len(wanted) and spent + (until - since) * cores >= wanted[len(moments)]:
            moments.append(since + (wanted[len(moments)] - spent) / cores)
        spent, since = spent + (until - since) * cores, until
    end = next(of.completed_s for of in run.result.trials if of.id == spec.id)
    return [*moments, *[end] * (len(wanted) - len(moments))]


def _past_trial(spec: TrialSpec, result: TrialResult, moments: Sequence[float], *, counted: bool) -> PastTrial:
    at = [EPOCH + moment for moment in moments]
    return PastTrial(
        id=spec.id,
        submitted_at=result.submitted_s,
        completed_at=result.completed_s,
        objective=tuple(Logged(n, report.value, at[n]) for n, report in enumerate(spec.reports)),
        cpu_seconds=tuple(
            Logged(n, START_CPU_S + report.work_s, at[n]) for n, report in enumerate(spec.reports) if counted
        ),
        total_cpu_s=START_CPU_S + spec.work_s if counted else None,
        first_node=NodeName(result.first_node) if counted else None,
        cpu=spec.cpu if counted else None,
        began_epoch_s=EPOCH + spec.submitted_at,
        stays=(Stay(NodeName(result.node), result.submitted_s, result.completed_s),) if counted else (),
    )
