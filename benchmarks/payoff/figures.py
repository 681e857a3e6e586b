"""What the runs come to: each policy of each sweep over its seeds, in pairs with the baseline's run of the seed."""

from collections.abc import Sequence

from benchmarks.payoff.plan import Plan
from benchmarks.payoff.records import Run
from controllers.core.results import compare
from controllers.lab.simulation.evaluation import PolicySummary, RunFigures


def summaries(plan: Plan, sweep: str, runs: Sequence[Run]) -> list[PolicySummary]:
    """Return a summary for each policy of ``plan`` and then for any other that ran with its baseline.

    A seed without the baseline's run is left out, since there is nothing to pair its runs with.
    """
    of_sweep = [run for run in runs if (run.task.world, run.task.sweep) == (plan.world, sweep)]
    baselines = {run.task.seed: run for run in of_sweep if run.task.policy == plan.policies[0]}
    ran = dict.fromkeys(run.task.policy for run in of_sweep)
    found = []
    for policy in (*plan.policies, *(other for other in ran if other not in plan.policies)):
        paired = [run for run in of_sweep if run.task.policy == policy and run.task.seed in baselines]
        if paired:
            figures = tuple(run_figures(run, baselines[run.task.seed]) for run in paired)
            found.append(PolicySummary(sweep, policy, policy, policy == plan.policies[0], figures))
    return found


def run_figures(run: Run, baseline: Run) -> RunFigures:
    """Return the figures of a run beside the baseline's of the same seed."""
    result, against = run.result, compare(baseline.result, run.result)
    return RunFigures(
        makespan_s=result.makespan_s,
        mean_completion_s=result.mean_completion_s,
        median_completion_s=result.median_completion_s,
        makespan_change=against.makespan_ratio - 1,
        mean_change=against.mean_ratio - 1,
        faster_share=against.faster_share,
        worst_loser=against.worst_loser,
        bound_ratio=result.makespan_s / run.makespan_bound_s,
        mean_bound_ratio=result.mean_completion_s / run.mean_bound_s,
        moves=sum(trial.moves for trial in result.trials),
        resizes=sum(trial.resizes for trial in result.trials),
        measures={
            "cpu_s": run.cpu_s,
            "delivered": run.delivered.nodes,
            "lost": run.delivered.lost,
            "probe_ms": 1000 * run.delivered.probe_s,
            "makespan_at_equal_speed": _at_equal_speed(against.makespan_ratio, run, baseline) - 1,
            "mean_at_equal_speed": _at_equal_speed(against.mean_ratio, run, baseline) - 1,
        },
    )


def _at_equal_speed(ratio: float, run: Run, baseline: Run) -> float:
    """Return ``ratio`` as it would be had the machine been as fast in both runs."""
    return ratio * baseline.delivered.probe_s / run.delivered.probe_s
