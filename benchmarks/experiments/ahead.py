"""The page of ``ahead``: every experiment against the default scheduler, ablations, totals unknown, and noise."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.experiments import markdown
from benchmarks.experiments.ablation import AblationPlan
from controllers.core.actions import Action, Migrate, Place, Resize
from controllers.core.model import TrialId
from controllers.lab.simulation.bounds import unusable_seconds
from controllers.lab.simulation.evaluation import (
    ExperimentPlan,
    MeanOverSeeds,
    PolicySummary,
    RunFigures,
    estimate,
    run_plans,
)
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.lab.simulation.experiments.elastic_experiments import ELASTIC_EXPERIMENTS
from controllers.lab.simulation.measures import ComparedRun, RunMeasure

BASELINE, POLICY, CLAIRVOYANT = "default", "ahead", "shortest-remaining"
COMPARED: Final = (BASELINE, POLICY, CLAIRVOYANT)
ABLATED: Final = ("S4", "S5", "S6", "G3", "A1", "A3")
NEAR_BOUND: Final = ("S4", "S5", "S6", "G1", "G2", "G3")
EXPERIMENTS: Final = {
    name: one
    for name, one in EVERY_EXPERIMENT.items()
    if not name.endswith(("-random", "-tpe")) and one not in ELASTIC_EXPERIMENTS
}
"""Without those of searches, whose trials are those of C1, C3 and C4, and those with a page of their own."""
SLIGHTLY: Final = 0.005
ABLATION_SEEDS: Final = 15
"""At most: what a rule is worth shows over fewer seeds than whether the policy is worse anywhere."""
LEFT_OUT: Final[Mapping[str, type[Action]]] = {
    "without placement": Place,
    "without shares": Resize,
    "without moves": Migrate,
}
UNPROTECTED: Final = f"{POLICY}:critical=1000000,end_weight=0"
"""Without regard to the sweep's end: no share, place or move protects the trials that would end last."""
HEADER: Final = (
    "experiment", "", "makespan", "x bound", "(default)", "mean", "x clairvoyant", "faster", "worst loser",
    "its greatest", "moves",
)  # fmt: skip


def _unusable(ran: ComparedRun) -> float:
    result = ran.run.result
    ends = {TrialId(trial.id): trial.completed_s for trial in result.trials}
    return unusable_seconds(ran.workload, ends) / result.makespan_s


UNUSABLE: Final = RunMeasure("unusable", "cores that no trial could use", "share", _unusable)


class Comparison(NamedTuple):
    """What the three policies made of one experiment, on the same seeds."""

    baseline: PolicySummary
    policy: PolicySummary
    clairvoyant: PolicySummary

    def beyond_noise(self, sign: int) -> list[str]:
        """Return the figures whose whole interval is above (``sign`` 1) or below (-1) the baseline's."""
        return [name for name, figure in _CHANGES.items() if _sign(self.policy.over_seeds(figure)) == sign]

    def mean_of(self, name: str) -> float:
        """Return the mean change of a figure."""
        found = self.policy.over_seeds(_CHANGES[name])
        return 0.0 if found is None else found.mean


_CHANGES: Final[Mapping[str, Callable[[RunFigures], float]]] = {
    "makespan": lambda run: run.makespan_change,
    "mean": lambda run: run.mean_change,
}
_INTRODUCTION: Final = (
    "`ahead` and the default scheduler over {seeds} seeds, each with the same workload under both. *makespan* and "
    "*mean* (completion time) are changes against the default scheduler, with their 95 % confidence interval. *x "
    "bound* is the makespan as a multiple of a time that no policy can get below, and *(default)* that of the default "
    "scheduler. *x clairvoyant* is the mean as a multiple of that of `shortest-remaining`, which knows the length of "
    "each trial beforehand, starts from the default scheduler's placement and pays no heed to the makespan. *faster* "
    "is the fraction of trials that end sooner than under the default scheduler. *worst loser* is the largest ratio of "
    "a trial's completion time to its own under the default scheduler: the mean over the seeds, and the greatest of "
    "all. *moves* are those of a sweep.\n\n"
    "`specon simulate A1` runs one of the experiments. A1 to A25 are everyday sweeps of ours "
    "(`controllers/lab/simulation/experiments/everyday.py`), and N1 to N4 sweeps on 30 and 100 nodes "
    "(`many_nodes.py`). All were fixed before any policy was measured on them. The [other pages](README.md) tell of "
    "the others."
)
_ABLATIONS: Final = (
    "Changes against the default scheduler over {seeds} seeds. Left without one kind of action, the policy does "
    "everything else as before; without placement, the default scheduler places the trials. Without protection of "
    f"the sweep's end, no share, place or move regards it (`{UNPROTECTED}`).\n"
)
_ABOVE_THE_BOUND: Final = (
    "The bound takes all nodes for one. But a trial trains on one node at a time. Where a trial can use 12.8 of a "
    "node's 16 cores and is alone there, the other 3.2 stand still, and no policy can use them. It could only keep "
    "more trials there until the end, which would be the short ones that now end early. *unusable* is the time, as a "
    "part of the makespan, that such cores come to, from the number of trials that were there at each moment. *rest* "
    "is the makespan without it, as a multiple of the bound.\n"
)
_UNTOLD: Final = "Here trials never tell how many steps they have. In S5 and A1, all do.\n"
_NOISY: Final = (
    "In A17 and A18 the work of a step varies by 20 % from one to the next, and CPU seconds are told every 10 s. In "
    "A24, 30 % of the trials end after 20 to 80 % of the steps that they told.\n"
)


def ahead(out: Path, seeds: Sequence[int], done: Callable[[int], None]) -> None:
    """Write the page."""
    plans = [ExperimentPlan(one, COMPARED, measures=(UNUSABLE,)) for one in EXPERIMENTS.values()]
    found = dict(zip(EXPERIMENTS, compared(run_plans(plans, seeds, done)), strict=True))
    untold = {name: found[name] for name in ("S5", "A13", "A14", "A1", "A15", "A16")}
    near = {name: found[name].policy for name in NEAR_BOUND}
    noisy = {name: found[name] for name in ("S5", "A17", "A1", "A18", "A24")}
    sections = {
        "Every experiment": (tally(found.values()), comparison_table(found)),
        "What lies above the bound": (_ABOVE_THE_BOUND, _above_the_bound(near)),
        "What each rule is worth": (
            _ABLATIONS.format(seeds=len(seeds[:ABLATION_SEEDS])),
            *_ablation_tables(found, seeds[:ABLATION_SEEDS], done),
        ),
        "Totals unknown": (_UNTOLD, comparison_table(untold)),
        "Reports that tell less than the truth": (_NOISY, comparison_table(noisy)),
    }
    body = [f"## {title}\n\n" + "\n".join(parts) for title, parts in sections.items()]
    told = _INTRODUCTION.format(seeds=len(seeds))
    markdown.write(out / "ahead.md", "Ahead, beside the default scheduler", told, body)


def compared(summaries: Sequence[PolicySummary]) -> list[Comparison]:
    """Return the comparison of each experiment; ``summaries`` hold three policies each, one after the other."""
    each = len(COMPARED)
    return [Comparison(*summaries[first : first + each]) for first in range(0, len(summaries), each)]


def tally(found: Iterable[Comparison]) -> str:
    """Return in words on how many experiments the policy wins and loses."""
    every = list(found)
    lines = []
    for name in _CHANGES:
        shorter, longer = (sum(name in one.beyond_noise(sign) for one in every) for sign in (-1, 1))
        slightly = sum(name in one.beyond_noise(1) and one.mean_of(name) < SLIGHTLY for one in every)
        of_these = f", in {slightly} of them by less than {SLIGHTLY:.1%}" if slightly else ""
        lines.append(
            f"Of {len(every)} experiments, the {name} is shorter in {shorter} and longer in {longer}{of_these}."
        )
    return (
        f"{' '.join(lines)} The others lie within the noise of the seeds. Rows in which one is longer are marked; of a "
        "policy that changes nothing, chance alone would mark one row in twenty. A first attempt waits up to a second "
        "for a policy that places it. Where little else differs from seed to seed, that is enough for a mark.\n"
    )


def comparison_table(found: Mapping[str, Comparison]) -> str:
    """Return the table of experiments by name; where the policy is significantly worse, it says so."""
    return markdown.table(HEADER, [_row(name, one) for name, one in found.items()])


def _row(name: str, one: Comparison) -> list[str]:
    over, losers = one.policy.over_seeds, [run.worst_loser for run in one.policy.runs]
    pairs = zip(one.policy.runs, one.clairvoyant.runs, strict=True)
    clairvoyant = estimate([ours.mean_completion_s / theirs.mean_completion_s for ours, theirs in pairs])
    worse, title = one.beyond_noise(1), f"{name}: {EVERY_EXPERIMENT[name].title}"
    return [
        f"**{title}**" if worse else title,
        f"**worse: {', '.join(worse)}**" if worse else "",
        markdown.percent(over(lambda run: run.makespan_change)),
        _ratio(over(lambda run: run.bound_ratio)),
        _ratio(one.baseline.over_seeds(lambda run: run.bound_ratio)),
        markdown.percent(over(lambda run: run.mean_change)),
        _ratio(clairvoyant),
        markdown.percent(over(lambda run: run.faster_share), signed=False),
        _ratio(estimate(losers)),
        f"{max(losers):.2f}",
        _mean(over(lambda run: run.moves)),
    ]


def _above_the_bound(found: Mapping[str, PolicySummary]) -> str:
    def rest(run: RunFigures) -> float:
        return run.bound_ratio * (1 - (run.measures[UNUSABLE.name] or 0.0))

    rows = [
        [
            name,
            _ratio(one.over_seeds(lambda run: run.bound_ratio)),
            markdown.percent(one.over_seeds(lambda run: run.measures[UNUSABLE.name]), signed=False),
            _ratio(one.over_seeds(rest)),
        ]
        for name, one in found.items()
    ]
    return markdown.table(("experiment", "x bound", "unusable", "rest"), rows)


def _ablation_tables(
    found: Mapping[str, Comparison], seeds: Sequence[int], done: Callable[[int], None]
) -> Iterator[str]:
    """Yield a table for each figure, with a row for each way to leave something out."""

    def run(spec: str, without: type[Action] | None = None) -> list[PolicySummary]:
        plans = [AblationPlan(EVERY_EXPERIMENT[name], (BASELINE, spec), without=without) for name in ABLATED]
        return list(run_plans(plans, seeds, done))[1::2]

    rows = {
        f"`{POLICY}`": [replace(one, runs=one.runs[: len(seeds)]) for one in (found[name].policy for name in ABLATED)],
        **{title: run(POLICY, kind) for title, kind in LEFT_OUT.items()},
        "without protection of the sweep's end": run(UNPROTECTED),
    }
    for name, figure in {**_CHANGES, "worst loser": _worst_loser}.items():
        cells = [[title, *(markdown.percent(one.over_seeds(figure)) for one in row)] for title, row in rows.items()]
        yield markdown.table((name, *ABLATED), cells)


def _worst_loser(run: RunFigures) -> float:
    return run.worst_loser - 1


def _sign(change: MeanOverSeeds | None) -> int:
    """Return whether all of the interval is above 0 (1) or below it (-1)."""
    if change is None or change.ci95 is None:
        return 0
    low, high = change.ci95
    return (low > 0) - (high < 0)


def _ratio(found: MeanOverSeeds | None) -> str:
    if found is None:
        return ""
    return f"{found.mean:.2f}" if found.half_width is None else f"{found.mean:.2f} ±{found.half_width:.2f}"


def _mean(found: MeanOverSeeds | None) -> str:
    return "" if found is None else f"{found.mean:.1f}"
