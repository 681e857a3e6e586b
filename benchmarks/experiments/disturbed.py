"""The page of machines that others use too: X0 to X6, each policy beside the default scheduler."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.experiments import markdown
from controllers.lab.simulation.evaluation import ExperimentPlan, PolicySummary, run_plans
from controllers.lab.simulation.experiments.disturbed import DISTURBED_EXPERIMENTS

HEADER: Final = (
    "others on the nodes",
    "policy",
    "makespan",
    "worst seed",
    "x bound",
    "mean",
    "worst seed",
    "worst loser",
    "moves",
)
GANG_SEEDS: Final = 10
"""Of the seeds: gangs take long to simulate."""
_INTRODUCTION: Final = (
    "Sweeps on nodes that others use too, as on a laptop with a browser, or beside neighbours on a cluster "
    "(`controllers/lab/simulation/experiments/disturbed.py`; `specon simulate X4` runs one). Requests say nothing "
    "of it. All were fixed before any policy was measured on them. *makespan* and *mean* (completion time) are "
    "changes against the default scheduler in the same seed, over {seeds} seeds ({gang_seeds} for X6), with the 95 "
    "% confidence interval of their mean; *worst seed* is the greatest of them. *x bound* is the makespan as a "
    "multiple of a time that no policy can get below, which knows what others take and when; for gangs (X6) it "
    "takes workers for free to exchange gradients, and for free to stop and go on. *worst loser* is the trial that "
    "lost the most, as a multiple of its completion time under the default scheduler.\n\n"
    "The trials of these sweeps tell how long their threads wait for a CPU, as the hooks do "
    "(`specon.cpu_wait_seconds`). By that, [nodes are known to give "
    "less](../reference/policies.md#nodes-that-others-use-too). In X1-blind to X5-blind they do not tell it, as "
    "programs on macOS do not. There nothing says whether a trial can use no more or others are in its way, and "
    "`ahead` depends on [noticing that it falls behind]"
    "(../reference/policies.md#what-if-it-is-wrong-the-watchdog-of-ahead)."
)


def disturbed(out: Path, seeds: Sequence[int], done: Callable[[int], None]) -> None:
    """Write the page."""
    plans = [ExperimentPlan(one, one.policies) for one in DISTURBED_EXPERIMENTS]
    of_gangs = [plan for plan in plans if plan.experiment.id == "X6"]
    of_trials = [plan for plan in plans if plan not in of_gangs]
    summaries = [*run_plans(of_trials, seeds, done), *run_plans(of_gangs, seeds[:GANG_SEEDS], done)]
    rows = []
    for plan in plans:
        setup = plan.experiment
        of_this = [one for one in summaries if one.experiment == setup.id and not one.baseline]
        others = f"{setup.id}: {setup.title.partition('; ')[2]}"
        rows += [_row(others if one is of_this[0] else "", one) for one in of_this]
    body = [markdown.table(HEADER, rows)]
    told = _INTRODUCTION.format(seeds=len(seeds), gang_seeds=min(GANG_SEEDS, len(seeds)))
    markdown.write(out / "disturbed.md", "Machines that others use too", told, body)


def _row(others: str, one: PolicySummary) -> list[str]:
    bound = one.over_seeds(lambda run: run.bound_ratio)
    loser = one.over_seeds(lambda run: run.worst_loser)
    moves = one.over_seeds(lambda run: run.moves)
    return [
        others,
        f"`{one.policy}`",
        markdown.percent(one.over_seeds(lambda run: run.makespan_change)),
        f"{max(run.makespan_change for run in one.runs):+.1%}",
        "" if bound is None else f"{bound.mean:.2f}",
        markdown.percent(one.over_seeds(lambda run: run.mean_change)),
        f"{max(run.mean_change for run in one.runs):+.1%}",
        "" if loser is None else f"{loser.mean:.2f}",
        "" if moves is None else f"{moves.mean:.1f}",
    ]
