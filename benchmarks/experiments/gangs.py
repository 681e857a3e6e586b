"""The page of gangs in simulation: E1 under each policy, and beside sizes that somebody fixed beforehand."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.experiments import markdown
from controllers.lab.simulation.evaluation import (
    ExperimentPlan,
    MeanOverSeeds,
    PolicySummary,
    RunFigures,
    estimate,
    run_plans,
)
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.lab.simulation.experiments.gang_experiments import (
    ALLOCATABLE,
    GANG_EXPERIMENTS,
    HOLDS_FOUR,
    MOST_WORKERS,
    gang_workload,
)
from controllers.lab.simulation.measures import UTILISATION

OURS: Final = "ahead"
OF_A_FIXED_SIZE: Final = ("gang-fifo",)
HEADER: Final = ("workers of a trial", "policy", "CPU in use", "makespan, s", "against ours", "mean, s", "against ours")
NODES: Final[Mapping[str, float]] = {"E1": ALLOCATABLE, "E1-four": HOLDS_FOUR}
"""Cores of each node."""
_INTRODUCTION: Final = (
    "DRAGON's authors report 20 to 30 % more utilisation and 65 % shorter elapsed times than under the default "
    "scheduler, but neither how large their cluster was nor what trained on it. So E1 is our own "
    "(`controllers/lab/simulation/experiments/gang_experiments.py`). How a trial's speed depends on the number of its "
    "workers, and on whether they share a node, was [measured](gangs-for-real.md). Means over {seeds} seeds with their "
    "95 % confidence interval. *CPU in use* is the part of all cores that computed, from the first submission to the "
    "last end; a change is one against the default scheduler in the same seed. *x bound* is a multiple of a time that "
    "no policy can get below; it takes workers for free to exchange gradients.\n\n"
    "Under `default`, kube-scheduler places the pods of each gang one by one: gangs that are half placed wait for each "
    "other, until the workers that started give up. `gang-fifo` starts whole gangs in order of arrival, `volcano` "
    "starts whichever fits, both with as many workers as a trial may have. `dragon` shrinks gangs so that waiting ones "
    "can start, and grows them where there is room. In `dragon+ahead`, `ahead` gives shares to the trials on a node. "
    "`ahead` alone starts a gang with as many workers as a node can hold, on several nodes only while there is room "
    "for every trial that way, and leaves it at that."
)
_FIXED: Final = (
    "Without such a policy, the author fixes the number of workers beforehand. Few workers lose less to their "
    "exchange, many end one trial sooner. Trials that need two workers at least have two where it says 1. "
    f"*against ours* is the change against `{OURS}` with one to {MOST_WORKERS} workers in the same seed: above 0, "
    f"`{OURS}` was better.\n"
)


def gangs(out: Path, seeds: Sequence[int], done: Callable[[int], None]) -> None:
    """Write the page."""
    plans = [ExperimentPlan(one, one.policies) for one in GANG_EXPERIMENTS]
    summaries = run_plans(plans, seeds, done)
    body = []
    for plan in plans:
        setup = plan.experiment
        elastic = [one for one in summaries if one.experiment == setup.id]
        ours = next(one for one in elastic if one.policy == OURS)
        rows = [_row(f"1 to {MOST_WORKERS}", ours, ours)]
        for workers in range(1, MOST_WORKERS + 1):
            rows += [_row(str(workers), one, ours) for one in _of_a_fixed_size(setup.id, workers, seeds, done)]
        body += [markdown.experiment(setup, elastic), f"{_FIXED}\n{markdown.table(HEADER, rows)}"]
    markdown.write(out / "gangs.md", "Gangs, beside other schedulers", _INTRODUCTION.format(seeds=len(seeds)), body)


def _of_a_fixed_size(
    name: str, workers: int, seeds: Sequence[int], done: Callable[[int], None]
) -> Sequence[PolicySummary]:
    draw = partial(gang_workload, node_cores=NODES[name], fixed=workers)
    fixed = OwnExperiment(f"{name}-{workers}", f"{workers} workers each", draw, measures=UTILISATION[:1])
    return run_plans([ExperimentPlan(fixed, OF_A_FIXED_SIZE)], seeds, done)


def _row(workers: str, summary: PolicySummary, ours: PolicySummary) -> list[str]:
    cells = [workers, f"`{summary.policy}`", markdown.percent(summary.over_seeds(_in_use), signed=False)]
    for figure in (_makespan, _mean):
        cells.append(_seconds(summary.over_seeds(figure)))
        pairs = zip(summary.runs, ours.runs, strict=True)
        change = estimate([figure(one) / figure(other) - 1 for one, other in pairs])
        cells.append("" if summary is ours else markdown.percent(change))
    return cells


def _in_use(run: RunFigures) -> float | None:
    return run.measures[UTILISATION[0].name]


def _makespan(run: RunFigures) -> float:
    return run.makespan_s


def _mean(run: RunFigures) -> float:
    return run.mean_completion_s


def _seconds(found: MeanOverSeeds | None) -> str:
    if found is None:
        return ""
    return f"{found.mean:.0f}" + ("" if found.half_width is None else f" ±{found.half_width:.0f}")
