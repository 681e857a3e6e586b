"""Tables of simulated experiments: ours over many seeds, and what was published beneath."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from controllers.lab.simulation.evaluation import Estimate, PolicySummary
from controllers.lab.simulation.experiments.experiment import Published, Setup
from controllers.lab.simulation.measures import RunMeasure, Unit
from controllers.policies.registry import parse_policy, policy_spec
from hera_specon.display import words

TITLES = (
    "makespan", "change", "mean", "change", "median", "faster", "worst loser", "x bound", "mean x bound", "moves",
    "resizes",
)  # fmt: skip
"""Of the columns that every experiment has, after the policy and the experiment's own measures."""


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """A line: ours, or what was ``published`` of the policy in the line above."""

    cells: tuple[str, ...]
    published: bool = False


def experiment_rows(experiment: Setup, summaries: Sequence[PolicySummary]) -> list[ExperimentRow]:
    """Return the lines of one experiment's table, under ``titles``."""
    rows: list[ExperimentRow] = []
    known = {_canonical(told.policy): told for told in experiment.published}
    default = next((told for told in experiment.published if told.policy == "default"), None)
    for summary in summaries:
        rows.append(ExperimentRow(_ours(summary, experiment)))
        told = known.get(summary.effective)
        if told is not None:
            rows.append(ExperimentRow(_told(told, default, experiment), published=True))
    return [row for row in rows if not row.published or set(row.cells[1:]) != {words.DASH}]


def titles(experiment: Setup) -> tuple[str, ...]:
    """Return what stands above the columns."""
    return ("policy", *(measure.title for measure in experiment.measures), *TITLES)


def experiment_table(experiment: Setup, summaries: Sequence[PolicySummary]) -> Table:
    """Return the table of one experiment."""
    seeds = summaries[0].seeds
    title = f"{experiment.id}: {experiment.title} ({seeds} seed{'s' * (seeds > 1)})"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, title in enumerate(titles(experiment)):
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for row in experiment_rows(experiment, summaries):
        table.add_row(*(Text(cell, style="dim" if row.published else "") for cell in row.cells))
    return table


def _canonical(spec: str) -> str:
    return policy_spec(parse_policy(spec))


def _ours(summary: PolicySummary, experiment: Setup) -> tuple[str, ...]:
    against = not summary.baseline
    return (
        summary.policy if summary.effective == _canonical(summary.policy) else summary.effective,
        *(_measured(summary, measure) for measure in experiment.measures),
        _seconds(summary.over_seeds(lambda run: run.makespan_s)),
        _percent(summary.over_seeds(lambda run: run.makespan_change) if against else None),
        _seconds(summary.over_seeds(lambda run: run.mean_completion_s)),
        _percent(summary.over_seeds(lambda run: run.mean_change) if against else None),
        _seconds(summary.over_seeds(lambda run: run.median_completion_s)),
        _share(summary.over_seeds(lambda run: run.faster_share) if against else None),
        _two_places(summary.over_seeds(lambda run: run.worst_loser) if against else None),
        _two_places(summary.over_seeds(lambda run: run.bound_ratio)),
        _two_places(summary.over_seeds(lambda run: run.mean_bound_ratio)),
        _count(summary.over_seeds(lambda run: run.moves)),
        _count(summary.over_seeds(lambda run: run.resizes)),
    )


def _measured(summary: PolicySummary, measure: RunMeasure) -> str:
    return _WITH_REACH[measure.unit](summary.over_seeds(lambda run: run.measures[measure.name]))


def _told(told: Published, default: Published | None, experiment: Setup) -> tuple[str, ...]:
    return (
        "  published",
        *(_published(told, measure) for measure in experiment.measures),
        _number(told.makespan_s),
        _change(told.makespan_change, told.makespan_s, None if default is None else default.makespan_s),
        _number(told.mean_completion_s),
        _change(told.mean_change, told.mean_completion_s, None if default is None else default.mean_completion_s),
        _number(told.median_completion_s),
        words.DASH if told.faster is None else _share_alone(told.faster),
        words.DASH if told.worst_loser is None else f"{told.worst_loser:.2f}",
        *(words.DASH,) * 4,
    )


def _published(told: Published, measure: RunMeasure) -> str:
    value = told.measures.get(measure.name)
    return words.DASH if value is None else _ALONE[measure.unit](value)


def _change(change: float | None, value: float | None, default: float | None) -> str:
    if change is None and value is not None and default is not None and value != default:
        change = value / default - 1
    return words.DASH if change is None else _part(change)


def _part(change: float) -> str:
    return f"{change * 100:+.1f} %"


def _number(value: float | None) -> str:
    return words.DASH if value is None else f"{value:.1f}"


def _share_alone(share: float) -> str:
    return f"{share * 100:.0f} %"


def _seconds(found: Estimate | None) -> str:
    return _with_reach(found, lambda value: f"{value:.1f}")


def _two_places(found: Estimate | None) -> str:
    return _with_reach(found, lambda value: f"{value:.2f}")


def _count(found: Estimate | None) -> str:
    return words.DASH if found is None else f"{found.mean:.1f}"


def _percent(found: Estimate | None) -> str:
    return _with_reach(found, lambda value: f"{value * 100:.1f}", signed=True, unit=" %")


def _share(found: Estimate | None) -> str:
    return _with_reach(found, lambda value: f"{value * 100:.0f}", unit=" %")


def _finer_share(found: Estimate | None) -> str:
    return _with_reach(found, lambda value: f"{value * 100:.1f}", unit=" %")


def _with_reach(found: Estimate | None, told: Callable[[float], str], *, signed: bool = False, unit: str = "") -> str:
    if found is None:
        return words.DASH
    value = told(found.mean)
    if float(value) == 0:
        value = value.removeprefix("-")
    sign = "+" if signed and found.mean > 0 and float(value) > 0 else ""
    reach = "" if found.half_width is None else f" \N{PLUS-MINUS SIGN}{told(found.half_width)}"
    return f"{sign}{value}{reach}{unit}"


_WITH_REACH: Mapping[Unit, Callable[[Estimate | None], str]] = {
    "share": _finer_share,
    "change": _percent,
    "seconds": _seconds,
    "trials": _two_places,
}
_ALONE: Mapping[Unit, Callable[[float], str]] = {
    "share": _share_alone,
    "change": _part,
    "seconds": _number,
    "trials": _number,
}
