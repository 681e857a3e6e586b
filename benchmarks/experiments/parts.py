"""The parts of docs/experiments, each made on its own."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.experiments import markdown, pictures
from benchmarks.experiments.ahead import ahead
from benchmarks.experiments.best_models import best_models, with_idle_cores
from benchmarks.experiments.changed_assumptions import (
    BY_CHANCE,
    CHANGED_ASSUMPTIONS,
    SPECON_CHANGED_ASSUMPTIONS,
    ChangedAssumption,
)
from benchmarks.experiments.disturbed import disturbed
from benchmarks.experiments.fig_6_25 import figure_6_25
from benchmarks.experiments.forecasts import forecasts
from benchmarks.experiments.gangs import gangs
from benchmarks.experiments.kais import kais
from controllers.core.errors import SpeconError
from controllers.lab.simulation.evaluation import (
    ExperimentPlan,
    MeanOverSeeds,
    PolicySummary,
    RunFigures,
    run_plans,
    simulate_seed,
)
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.lab.simulation.experiments.curve_families import CURVE_EXPERIMENTS
from controllers.lab.simulation.experiments.elastic_experiments import ELASTIC_EXPERIMENTS
from controllers.lab.simulation.experiments.everyday import EVERYDAY_EXPERIMENTS
from controllers.lab.simulation.experiments.gang_experiments import GANG_EXPERIMENTS
from controllers.lab.simulation.experiments.many_nodes import MANY_NODES_EXPERIMENTS
from controllers.lab.simulation.experiments.published import EXPERIMENTS

Done = Callable[[int], None]
Part = Callable[[Path, Sequence[int], Done], None]
COMPARED = ("default", "specon", "specon+flowcon", "fifo", "gandiva", "shortest-remaining", "longest-remaining")
_SEED = 0
_WITH_OWN_PAGES = (
    *EVERYDAY_EXPERIMENTS,
    *MANY_NODES_EXPERIMENTS,
    *CURVE_EXPERIMENTS,
    *GANG_EXPERIMENTS,
    *ELASTIC_EXPERIMENTS,
)


def tables(out: Path, seeds: Sequence[int], done: Done) -> None:
    """Write the table of every experiment that has published figures, with these beside ours."""
    plans = [
        ExperimentPlan(experiment, experiment.policies)
        for experiment in EVERY_EXPERIMENT.values()
        if experiment not in _WITH_OWN_PAGES
    ]
    summaries = run_plans(plans, seeds, done)
    body = [
        markdown.experiment(plan.experiment, [s for s in summaries if s.experiment == plan.experiment.id])
        for plan in plans
    ]
    told = (
        f"Each figure is a mean over {len(seeds)} seeds with its 95 % confidence interval. The published figure, of "
        "one run, is below it in italics. *change* compares with the default scheduler in the same seed. *faster* is "
        "the fraction of trials that end sooner. *worst loser* is the largest ratio of a trial's completion time to "
        "its own under the default scheduler. *x bound* is the makespan, and *mean x bound* the mean completion time, "
        "as a multiple of a time that no policy can get below. Columns between *policy* and *makespan* are the papers' "
        "own measures: [goals](goals.md) and [placement](placement-and-contention.md) explain them."
    )
    markdown.write(out / "table.md", "The published experiments beside ours", told, body)


def compared(out: Path, seeds: Sequence[int], done: Done) -> None:
    """Write what other policies make of the same workloads."""
    chosen = [EXPERIMENTS[name] for name in ("F5", "S5")]
    summaries = run_plans([ExperimentPlan(experiment, COMPARED) for experiment in chosen], seeds, done)
    body = [markdown.experiment(one, [s for s in summaries if s.experiment == one.id]) for one in chosen]
    told = f"Policies that nobody published for these workloads, over {len(seeds)} seeds, for comparison."
    markdown.write(out / "comparison.md", "Other policies on the same workloads", told, body)


def assumptions(out: Path, seeds: Sequence[int], done: Done) -> None:
    """Write what each assumption that the thesis leaves open does to the gains."""
    body = []
    for policy, names, changes in (
        ("specon", ("S4",), SPECON_CHANGED_ASSUMPTIONS),
        ("flowcon", ("F1", "F4"), CHANGED_ASSUMPTIONS),
    ):
        plans = [change.plan(EXPERIMENTS[name], policy) for name in names for change in changes]
        summaries = [summary for summary in run_plans(plans, seeds, done) if not summary.baseline]
        for place, name in enumerate(names):
            own = summaries[place * len(changes) : (place + 1) * len(changes)]
            body.append(f"## {name}: {EXPERIMENTS[name].title}\n\n{_assumption_table(changes, own)}")
    told = (
        f"Each row changes one assumption, over {len(seeds)} seeds. Figures are changes against the default scheduler "
        "under the same assumption. The lengths of jobs stay as calibrated for the first row."
    )
    markdown.write(out / "assumptions.md", "What each assumption does", told, body)


def by_chance(out: Path, seeds: Sequence[int], done: Done) -> None:
    """Write the experiments with first placement left to chance."""
    plans = [
        ExperimentPlan(experiment, tuple(dict.fromkeys((*experiment.policies, *_LARGER_ALPHAS))))
        for experiment in BY_CHANCE.values()
    ]
    summaries = run_plans(plans, seeds, done)
    body = [
        markdown.experiment(plan.experiment, [s for s in summaries if s.experiment == plan.experiment.id])
        for plan in plans
    ]
    told = (
        f"SpeCon's experiments again, over {len(seeds)} seeds, with random first placement, trials that can use a "
        "whole node, and lengths calibrated again on the default column."
    )
    markdown.write(out / "placed-by-chance.md", "With first placement left to chance", told, body)


def draw(out: Path, seeds: Sequence[int], done: Done) -> None:
    """Draw the pictures of one seed."""
    del seeds
    for name in ("F4", "F5", "S1", "S4", "S5", "S6"):
        experiment = EXPERIMENTS[name]
        policy = "flowcon" if name.startswith("F") else "specon"
        runs = dict(
            zip(("default", policy), simulate_seed(ExperimentPlan(experiment, ("default", policy)), _SEED), strict=True)
        )
        bars = [pictures.Bars(label, pictures.in_order(run.result)) for label, run in runs.items()]
        pictures.completion_bars(f"{name}, one seed", bars).save(out / f"{name.lower()}-completion.svg")
        if name == "S5":
            pictures.trials_over_nodes("S5, one seed: trials over nodes", runs).save(out / "s5-nodes.svg")
        done(2)
    chance = BY_CHANCE["S5"]
    runs = dict(
        zip(("default", "specon"), simulate_seed(ExperimentPlan(chance, ("default", "specon")), _SEED), strict=True)
    )
    pictures.trials_over_nodes("S5 placed by chance, one seed", runs).save(out / "s5-nodes-by-chance.svg")
    plan = ExperimentPlan(EXPERIMENTS["F1"], ("default", "flowcon:alpha=0.05,interval=20"))
    runs = dict(zip(("default", "FlowCon, alpha 5 %, interval 20 s"), simulate_seed(plan, _SEED), strict=True))
    pictures.cpu_over_time("F1: cores in use", runs).save(out / "f1-cpu.svg")


def sensitivities(out: Path, seeds: Sequence[int], done: Done) -> None:
    """Draw what alpha and interval do to the mean completion time (as Fig. 6.17 and 6.18)."""
    alphas, intervals = (0.01, 0.02, 0.05, 0.1, 0.2), (10.0, 15.0, 20.0, 25.0, 30.0, 45.0, 60.0)
    for name, experiments in (("", EXPERIMENTS), ("-by-chance", BY_CHANCE)):
        over = {
            "alpha": (experiments["S3"], [(alpha, f"specon:alpha={alpha},interval=30") for alpha in alphas]),
            "interval": (experiments["S2"], [(at, f"specon:alpha=0.05,interval={at:g}") for at in intervals]),
        }
        for what, (experiment, specs) in over.items():
            plan = ExperimentPlan(experiment, ("default", *(spec for _, spec in specs)))
            found = run_plans([plan], seeds, done)[1:]
            ours = [(at, _change(summary)) for (at, _), summary in zip(specs, found, strict=True)]
            known = {told.policy: told.mean_change for told in experiment.published}
            told = [(at, change) for at, spec in specs if (change := known.get(spec)) is not None]
            title = f"{experiment.id}{', placed by chance' if name else ''}: mean completion time, change in %"
            picture = pictures.sensitivity(title, f"{what}{' (s)' if what == 'interval' else ''}", ours, told)
            picture.save(out / f"{what}{name}.svg")


def _change(summary: PolicySummary) -> MeanOverSeeds:
    found = summary.over_seeds(lambda run: run.mean_change)
    if found is None:
        message = f"{summary.policy} was not run"
        raise SpeconError(message)
    return found


def _assumption_table(changes: Sequence[ChangedAssumption], summaries: Sequence[PolicySummary]) -> str:
    columns: Mapping[str, Callable[[RunFigures], float | None]] = {
        "makespan": lambda run: run.makespan_change,
        "mean": lambda run: run.mean_change,
        "faster": lambda run: run.faster_share,
        "worst loser": lambda run: run.worst_loser - 1,
    }
    if "watched_change" in summaries[0].runs[0].measures:
        columns = {**columns, "job 3": lambda run: run.measures["watched_change"]}
    rows = [
        [
            change.title,
            *(
                markdown.percent(summary.over_seeds(figure), signed=name != "faster")
                for name, figure in columns.items()
            ),
        ]
        for change, summary in zip(changes, summaries, strict=True)
    ]
    return markdown.table(["assumption", *columns], rows)


_LARGER_ALPHAS = ("specon:alpha=0.05,interval=30", "specon:alpha=0.1,interval=30")
PARTS: Mapping[str, Part] = {
    "table": tables,
    "assumptions": assumptions,
    "chance": by_chance,
    "compared": compared,
    "pictures": draw,
    "sensitivity": sensitivities,
    "figure-6-25": figure_6_25,
    "ahead": ahead,
    "disturbed": disturbed,
    "forecasts": forecasts,
    "best-models": best_models,
    "best-models-with-idle-cores": with_idle_cores,
    "gangs": gangs,
    "kais": kais,
}
