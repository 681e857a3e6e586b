"""The pages of sweeps that look for the best model: how soon it is known, and how often it is lost."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.experiments import markdown
from controllers.lab.simulation.best_models import final_losses
from controllers.lab.simulation.evaluation import ExperimentPlan, MeanOverSeeds, RunFigures, estimate, run_plans
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.lab.simulation.experiments.curve_families import task_names
from controllers.lab.simulation.experiments.experiment import Setup
from controllers.lab.simulation.experiments.nearest_curves import NearestCurves

BASELINE: Final = "default"
OURS: Final = ("promote", "promote:rungs=best", "promote:rungs=fast")
ASHA: Final = tuple(
    f"optuna:pruner=asha,min_resource={first},reduction_factor={eta}" for first in (4, 8, 12) for eta in (2, 4)
)
"""From a first rung at 8, 16 and 24 % of a training: a trial has 50 steps."""
THEIRS: Final = (
    "optuna:pruner=asha",
    *ASHA,
    "optuna:pruner=hyperband",
    "optuna:pruner=median,n_startup_trials=5,n_warmup_steps=4",
)
EACH: Final = ("C1", "C2", "C3", "C4")
SPARE: Final = ("C2-spare", "C4-spare")
SCHEDULES: Final = ("constant", "cosine", "one-cycle")
WARMED: Final = ("promote:rungs=best", "promote:rungs=fast", "promote:rungs=best,warmup=0.3", ASHA[2])
SEARCHES: Final = ("C1-random", "C1-tpe")
SEARCHED: Final = (BASELINE, "promote", "promote:rungs=best")
FEWER: Final = 48
"""Sweeps of each kind beside the first four: two of each task. With ``ahead``, one of a hundred takes seconds."""
RISK: Final = 0.05
"""Part of the sweeps that may lose more than 1 %."""
COLUMNS: Final = (
    "policy", "makespan", "within 1 % known at", "regret", "regret > 1 %", "> 5 %", "best value > 1 %",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ran:
    """One policy over the sweeps of one experiment, beside the baseline on the same sweeps, task by task."""

    policy: str
    runs: tuple[RunFigures, ...]
    baseline: tuple[RunFigures, ...]
    tasks: tuple[str, ...]

    def over_tasks(
        self, figure: Callable[[RunFigures, RunFigures], float | None], among: Sequence[str] = ()
    ) -> MeanOverSeeds | None:
        """Return mean and interval of a figure of run and baseline; each task counts once: its sweeps are alike."""
        found: dict[str, list[float]] = {}
        for task, run, base in zip(self.tasks, self.runs, self.baseline, strict=True):
            if (not among or task in among) and (value := figure(run, base)) is not None:
                found.setdefault(task, []).append(value)
        return estimate([statistics.fmean(values) for values in found.values()]) if found else None

    def mean(self, figure: Callable[[RunFigures, RunFigures], float | None], among: Sequence[str]) -> float:
        """Return the mean of a figure over those tasks."""
        found = self.over_tasks(figure, among)
        return 0.0 if found is None else found.mean


def best_models(out: Path, seeds: Sequence[int], done: Callable[[int], None]) -> None:
    """Write the page."""
    tasks = task_names()
    found = {name: _ran(name, (BASELINE, *OURS, *THEIRS), tasks, seeds, done) for name in EACH}
    fewer = seeds[:FEWER]
    schedules = {name: _ran(f"C4-{name}", (BASELINE, *WARMED), task_names(name), fewer, done) for name in SCHEDULES}
    searches = {name: _searched(name, fewer, done) for name in SEARCHES}
    sweeps = f"{len(seeds)} sweeps of each of the first four kinds and {len(fewer)} of the others"
    body = [
        *_compared(found, tasks),
        "## By schedule of the learning rate\n\n" + _SCHEDULES,
        *(f"### {name}\n\n{_table(of)}" for name, of in schedules.items()),
        f"## With a search\n\n{_SEARCHES}",
        *(f"### {EVERY_EXPERIMENT[name].title}\n\n{table}" for name, table in searches.items()),
    ]
    markdown.write(out / "best-models.md", "Sweeps that look for the best model", _introduced(sweeps, tasks), body)


def with_idle_cores(out: Path, seeds: Sequence[int], done: Callable[[int], None]) -> None:
    """Write the page of sweeps whose trials can use the cores of those that wait or were stopped."""
    tasks, fewer = task_names(), seeds[:FEWER]
    policies = (BASELINE, "ahead", *(f"{one}+ahead" for one in (*OURS, *THEIRS)))
    found = {name: _ran(name, policies, tasks, fewer, done) for name in SPARE}
    told = f"{_introduced(f'{len(fewer)} sweeps of each kind', tasks)}\n\n{_IDLE_CORES}"
    markdown.write(
        out / "best-models-with-idle-cores.md", "The best model, with idle cores", told, _compared(found, tasks)
    )


def _introduced(sweeps: str, tasks: Sequence[str]) -> str:
    return _INTRODUCTION.format(sweeps=sweeps, tasks=len(tasks), data=len({task.split("/")[0] for task in tasks}))


def _compared(found: Mapping[str, Sequence[Ran]], tasks: Sequence[str]) -> list[str]:
    tables = [f"## {EVERY_EXPERIMENT[name].title}\n\n{_table(of)}" for name, of in found.items()]
    return [*tables, f"## At equal risk\n\n{_EQUAL_RISK}\n{_equal_risk(found, tasks)}"]


def _ran(
    name: str, policies: tuple[str, ...], tasks: Sequence[str], seeds: Sequence[int], done: Callable[[int], None]
) -> list[Ran]:
    summaries = run_plans([ExperimentPlan(EVERY_EXPERIMENT[name], policies)], seeds, done)
    of_seeds = tuple(tasks[seed % len(tasks)] for seed in seeds)
    return [Ran(one.policy, one.runs, summaries[0].runs, of_seeds) for one in summaries]


def _makespan(run: RunFigures, base: RunFigures) -> float:
    return run.makespan_s / base.makespan_s


def _known(run: RunFigures, base: RunFigures) -> float | None:
    at = run.measures["within_1_percent_at_s"]
    return None if at is None else at / base.makespan_s


def _measure(name: str) -> Callable[[RunFigures, RunFigures], float | None]:
    return lambda run, _: run.measures[name]


_LOST: Final = _measure("lost_over_1_percent")


def _table(found: Sequence[Ran]) -> str:
    rows = [
        [
            f"`{one.policy}`",
            markdown.percent(one.over_tasks(_makespan), signed=False),
            markdown.percent(one.over_tasks(_known), signed=False),
            _percent(one.over_tasks(_measure("regret_percent"))),
            markdown.percent(one.over_tasks(_LOST), signed=False),
            markdown.percent(one.over_tasks(_measure("lost_over_5_percent")), signed=False),
            markdown.percent(one.over_tasks(_measure("best_value_lost_over_1_percent")), signed=False),
        ]
        for one in found
    ]
    return markdown.table(COLUMNS, rows)


def _equal_risk(found: Mapping[str, Sequence[Ran]], tasks: Sequence[str]) -> str:
    rows = [row for name, of in found.items() for row in _chosen_rows(name, of, tasks)]
    return markdown.table(("experiment", "ours", "its risk", "ASHA's risk", "ours / ASHA's makespan"), rows)


def _chosen_rows(name: str, found: Sequence[Ran], tasks: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row for each level of ours that ends trials, beside ASHA as it was chosen on the other half of tasks."""
    halves = (tasks[::2], tasks[1::2])
    asha = [one for one in found if "pruner=asha,min_resource" in one.policy]
    for ours in (one for one in found if one.policy.startswith(("promote:rungs=best", "promote:rungs=fast"))):
        ratios, risks = [], []
        for chosen_on, measured_on in (halves, halves[::-1]):
            safe = [one for one in asha if one.mean(_LOST, chosen_on) <= RISK]
            theirs = min(safe or asha, key=lambda one: one.mean(_makespan if safe else _LOST, chosen_on))
            risks += [theirs.mean(_LOST, [task]) for task in measured_on]
            ratios += [ours.mean(_makespan, [task]) / theirs.mean(_makespan, [task]) for task in measured_on]
        yield [
            name,
            f"`{ours.policy}`",
            markdown.percent(ours.over_tasks(_LOST), signed=False),
            markdown.percent(estimate(risks), signed=False),
            markdown.percent(estimate(ratios), signed=False),
        ]


def _searched(name: str, seeds: Sequence[int], done: Callable[[int], None]) -> str:
    experiment = EVERY_EXPERIMENT[name]
    summaries = run_plans([ExperimentPlan(experiment, SEARCHED)], seeds, done)
    rows = [
        [
            f"`{one.policy}`",
            markdown.percent(one.over_seeds(lambda run: 1 + run.makespan_change), signed=False),
            _percent(one.over_seeds(lambda run: run.measures["beyond_chance_percent"])),
        ]
        for one in summaries
    ]
    ceiling = _percent(estimate([_ceiling(experiment, seed) for seed in seeds]))
    return markdown.table(("policy", "makespan", "beyond chance"), [*rows, ["best of the table", "", ceiling]])


def _ceiling(experiment: Setup, seed: int) -> float:
    """Return how much better the best configuration of the table is than the best that was drawn, in percent."""
    drawn = final_losses(experiment.workload(seed)).values()
    table = experiment.surrogate(seed)
    ends = [one.reports[-1].value for one in table.configurations] if isinstance(table, NearestCurves) else []
    best = min(value for value in ends if math.isfinite(value))
    return 100 * (min(drawn) - best) / (statistics.median(drawn) - min(drawn))


def _percent(found: MeanOverSeeds | None) -> str:
    return "" if found is None else markdown.percent(MeanOverSeeds(found.mean / 100, _part(found.ci95)), signed=False)


def _part(ci95: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if ci95 is None else (ci95[0] / 100, ci95[1] / 100)


_INTRODUCTION: Final = (
    "{sweeps}, drawn from {tasks} tasks: {data} sets of real data, three schedules of the learning rate, "
    "120 configurations of a network each, all trained for 50 steps (`python -m benchmarks.learning_curves`). "
    "None of these curves was used to choose a number. `promote` compares both the best and the newest value, and "
    "lets four trials go beyond each rung at least: we chose both on 8 tasks of LCBench, after an earlier version had "
    "lost more here. That trials which wait use idle cores, and that only those which may go beyond a rung count at "
    "the next, we tried on LCBench and on the first 24 sweeps of each kind below. "
    "`specon simulate C1` runs one of the experiments.\n\n"
    "*makespan* is a part of that of training everything under the default scheduler. *within 1 % known at* is when a "
    "model within 1 % of the sweep's best was first seen, as a part of the same. *regret* is the gap between the best "
    "final value of the trials that came to their end and the best final value of all trials, in percent of the gap "
    "between that best and the median trial. *regret > 1 %* is the part of the sweeps that lost more than that. "
    "*best value > 1 %* is the part in which the best value that any trial reported at any time was worse by more than "
    "that than the best that training everything would have shown: many of these trainings overfit, and a user who "
    "keeps the checkpoint of the best value has lost that much less. "
    "Intervals are 95 %, over tasks, as sweeps of one task are alike. Starts, suspensions and resumes cost what they "
    "cost on Argo, about 4 % of a trial. `optuna:...` are Optuna's own classes; settings that are not named are "
    "Optuna's own."
)
_IDLE_CORES: Final = (
    "Here each trial can use up to four cores, and `ahead` shares those of trials that wait or were stopped among the "
    "others. The [other page](best-models.md) has the same sweeps with trials of a single core. One setting of "
    "`ahead`, the margin for lengths that are guessed, was chosen with a look at the makespans of C3 and C4."
)
_EQUAL_RISK: Final = (
    "Each level of ours, as it is, beside the shortest of the six settings of Optuna's ASHA above that lost more than "
    f"1 % in at most {RISK:.0%} of the sweeps. That setting is chosen on one half of the tasks and measured on the "
    "other, both ways. Where no setting is that safe, it is the safest.\n"
)
_SCHEDULES: Final = (
    "100 trials, 16 at a time. A learning rate in one cycle rises over the first 30 % of a training, so early values "
    "say little; `warmup=0.3` puts the rungs behind that.\n"
)
_SEARCHES: Final = (
    "Here hyperparameters are asked for as trials start, 30 trials, 4 at a time. A trial trains as the nearest "
    "configuration of the task did. *beyond chance* is how much better the best model found is than the best of as "
    "many drawn by chance, in percent of the gap between the median and the best of those; *best of the table* is the "
    "most that any search could find. Under `promote`, all trials have started before more than a few have come to "
    "their end, so the search can learn next to nothing.\n"
)
