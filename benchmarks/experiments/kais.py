"""The page of ``kais``: sweeps that it never saw, beside the policies that it should be compared with."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.experiments import markdown
from benchmarks.train_kais.workloads import test
from controllers.lab.simulation.evaluation import ExperimentPlan, MeanOverSeeds, PolicySummary, RunFigures, run_plans
from controllers.lab.simulation.experiments.experiment import OwnExperiment, Published
from controllers.lab.simulation.measures import ComparedRun, RunMeasure
from controllers.worlds.simulated.scenario import Costs

POLICIES: Final = ("default", "specon", "flowcon2", "gandiva", "ahead", "kais")
NODES: Final = (4, 8, 30, 100)
UNDER_LOAD: Final = 0.8
"""Part of the trials at whose end the load is over: then there is less to do than there is room for."""
COSTS: Final = Costs.argo()
MOVE_S: Final = COSTS.leave_s + COSTS.next_attempt_s + COSTS.start_s + COSTS.start_cpu_s + COSTS.restore_s
"""Seconds for which a trial that moves does not train."""
HEADER: Final = (
    "policy", "trials per hour", "mean completion, s", "makespan, s", "cost, s per trial", "mean", "makespan",
    "faster", "worst loser", "moves",
)  # fmt: skip


def _throughput(ran: ComparedRun) -> float:
    ends = sorted(trial.completed_s for trial in ran.run.result.trials)
    ended = round(UNDER_LOAD * len(ends))
    return 3600 * ended / ends[ended - 1]


def _cost(ran: ComparedRun) -> float:
    trials = ran.run.result.trials
    actions = sum(trial.moves * MOVE_S + trial.resizes * COSTS.resize_s for trial in trials)
    return actions / len(trials)


MEASURES: Final = (
    RunMeasure("trials_per_hour", "trials per hour under load", "trials", _throughput),
    RunMeasure("scheduling_cost_s", "scheduling cost", "seconds", _cost),
)


def kais(out: Path, seeds: Sequence[int], done: Callable[[int], None]) -> None:
    """Write what each policy makes of the test sweeps, for each number of nodes."""
    plans = [ExperimentPlan(experiment(nodes), POLICIES) for nodes in NODES]
    summaries = run_plans(plans, seeds, done)
    body = []
    for nodes, plan in zip(NODES, plans, strict=True):
        own = [summary for summary in summaries if summary.experiment == plan.experiment.id]
        body.append(
            f"## {nodes} nodes\n\n{markdown.table(HEADER, [row(summary) for summary in own])}\n{verdict(own)}\n"
        )
    told = (
        f"`kais` on sweeps of a kind that it was not trained on, over {len(seeds)} seeds, each with the same sweep "
        "under all policies: four trials for each node, which come in bursts, most of them short and some long. In "
        "half of the sweeps all nodes have 16 cores, in the others 8 or 32. *trials per hour* are those that ended "
        f"until {UNDER_LOAD:.0%} of all had. *cost* is the scheduling cost: {MOVE_S:.1f} s for each move, for which "
        f"the trial does not train, and {COSTS.resize_s:g} s for each change of a share; how KaiS's paper counts it "
        "is not public. *mean* and *makespan* are changes against the default scheduler in the same seed, *faster* "
        "is the fraction of trials that end sooner, and *worst loser* the largest ratio of a trial's completion time "
        "to its own under the default scheduler. All with 95 % confidence intervals. "
        "[How it was trained](kais-training.md)."
    )
    markdown.write(out / "kais.md", "A learned dispatcher on sweeps that it never saw", told, body)


def experiment(nodes: int) -> OwnExperiment:
    """Return the test on so many nodes."""
    return OwnExperiment(
        f"K{nodes}",
        f"{4 * nodes} trials in bursts on {nodes} nodes",
        partial(test, nodes),
        published=tuple(map(Published, POLICIES)),
        measures=MEASURES,
    )


def row(summary: PolicySummary) -> list[str]:
    """Return the line of a policy."""
    change = {name: "" if summary.baseline else markdown.percent(_over(summary, of)) for name, of in _CHANGES.items()}
    return [
        f"`{summary.policy}`",
        *(_number(_over(summary, of)) for of in _FIGURES),
        *change.values(),
        "" if summary.baseline else markdown.percent(_over(summary, lambda run: run.faster_share), signed=False),
        "" if summary.baseline else _number(_over(summary, lambda run: run.worst_loser), 2),
        _number(_over(summary, lambda run: float(run.moves))),
    ]


def verdict(summaries: Sequence[PolicySummary]) -> str:
    """Return in words how ``kais`` compares with ``ahead`` in the same seeds."""
    ours, other = (next(one for one in summaries if one.policy == name) for name in ("kais", "ahead"))
    told = []
    for name, of in (("mean completion", _mean), ("makespan", _makespan)):
        ratios = [of(a) / of(b) for a, b in zip(ours.runs, other.runs, strict=True)]
        better = sum(ratio < 1 for ratio in ratios)
        ratio = sum(ratios) / len(ratios)
        told.append(f"its {name} is {ratio:.3f} times that of `ahead`, and shorter in {better} of {len(ratios)} seeds")
    return f"`kais` beside `ahead`: {'; '.join(told)}."


def _mean(run: RunFigures) -> float:
    return run.mean_completion_s


def _makespan(run: RunFigures) -> float:
    return run.makespan_s


_FIGURES: Final[Sequence[Callable[[RunFigures], float | None]]] = (
    lambda run: run.measures["trials_per_hour"],
    _mean,
    _makespan,
    lambda run: run.measures["scheduling_cost_s"],
)
_CHANGES: Final[Mapping[str, Callable[[RunFigures], float]]] = {
    "mean": lambda run: run.mean_change,
    "makespan": lambda run: run.makespan_change,
}


def _over(summary: PolicySummary, figure: Callable[[RunFigures], float | None]) -> MeanOverSeeds | None:
    return summary.over_seeds(figure)


def _number(found: MeanOverSeeds | None, digits: int = 0) -> str:
    if found is None:
        return ""
    reach = "" if found.half_width is None else f" ±{found.half_width:.{digits}f}"
    return f"{found.mean:.{digits}f}{reach}"
