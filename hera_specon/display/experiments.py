"""Tables of simulated experiments: ours over many seeds, and what was published beneath."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from controllers.policies.registry import parse_policy, policy_spec
from controllers.simulation.campaign import Summary
from controllers.simulation.experiment import Published, Setup
from controllers.simulation.statistics import Estimate
from hera_specon.display import words

TITLES = (
    "policy", "makespan", "change", "mean", "change", "median", "faster", "worst loser", "x bound", "mean x bound",
    "moves",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """A line: ours, or what was ``published`` of the policy in the line above."""

    cells: tuple[str, ...]
    published: bool = False


def experiment_rows(experiment: Setup, summaries: Sequence[Summary]) -> list[ExperimentRow]:
    """Return the lines of one experiment's table, under ``TITLES``; a watched trial's change comes last."""
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
    return TITLES if experiment.watched is None else (*TITLES, f"job {experiment.watched + 1}")


def experiment_table(experiment: Setup, summaries: Sequence[Summary]) -> Table:
    """Return the table of one experiment."""
    seeds = summaries[0].seeds
    table = Table(title=f"{experiment.id}: {experiment.title} ({seeds} seed{'s' * (seeds > 1)})", box=box.SIMPLE_HEAD)
    table.title_justify = "left"
    for number, title in enumerate(titles(experiment)):
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for row in experiment_rows(experiment, summaries):
        table.add_row(*(Text(cell, style="dim" if row.published else "") for cell in row.cells))
    return table


def _canonical(spec: str) -> str:
    return policy_spec(parse_policy(spec))


def _ours(summary: Summary, experiment: Setup) -> tuple[str, ...]:
    against = not summary.baseline
    watched = summary.over_seeds(lambda run: run.watched_change) if against else None
    cells = (
        summary.policy if summary.effective == _canonical(summary.policy) else summary.effective,
        _seconds(summary.over_seeds(lambda run: run.makespan_s)),
        _percent(summary.over_seeds(lambda run: run.makespan_change) if against else None),
        _seconds(summary.over_seeds(lambda run: run.mean_completion_s)),
        _percent(summary.over_seeds(lambda run: run.mean_change) if against else None),
        _seconds(summary.over_seeds(lambda run: run.median_completion_s)),
        _share(summary.over_seeds(lambda run: run.faster_share) if against else None),
        _times(summary.over_seeds(lambda run: run.worst_loser) if against else None),
        _times(summary.over_seeds(lambda run: run.bound_ratio)),
        _times(summary.over_seeds(lambda run: run.mean_bound_ratio)),
        _count(summary.over_seeds(lambda run: float(run.moves))),
    )
    return cells if experiment.watched is None else (*cells, _percent(watched))


def _told(told: Published, default: Published | None, experiment: Setup) -> tuple[str, ...]:
    cells = (
        "  published",
        _number(told.makespan_s),
        _change(told.makespan_change, told.makespan_s, None if default is None else default.makespan_s),
        _number(told.mean_completion_s),
        _change(told.mean_change, told.mean_completion_s, None if default is None else default.mean_completion_s),
        _number(told.median_completion_s),
        words.DASH if told.faster is None else f"{told.faster * 100:.0f} %",
        words.DASH if told.worst_loser is None else f"{told.worst_loser:.2f}",
        *(words.DASH,) * 3,
    )
    if experiment.watched is None:
        return cells
    return (*cells, words.DASH if told.watched_change is None else _part(told.watched_change))


def _change(change: float | None, value: float | None, default: float | None) -> str:
    if change is None and value is not None and default is not None and value != default:
        change = value / default - 1
    return words.DASH if change is None else _part(change)


def _part(change: float) -> str:
    return f"{change * 100:+.1f} %"


def _number(value: float | None) -> str:
    return words.DASH if value is None else f"{value:.1f}"


def _seconds(found: Estimate | None) -> str:
    return _with_reach(found, lambda value: f"{value:.1f}")


def _times(found: Estimate | None) -> str:
    return _with_reach(found, lambda value: f"{value:.2f}")


def _count(found: Estimate | None) -> str:
    return words.DASH if found is None else f"{found.mean:.1f}"


def _percent(found: Estimate | None) -> str:
    return _with_reach(found, lambda value: f"{value * 100:.1f}", signed=True, unit=" %")


def _share(found: Estimate | None) -> str:
    return _with_reach(found, lambda value: f"{value * 100:.0f}", unit=" %")


def _with_reach(found: Estimate | None, told: Callable[[float], str], *, signed: bool = False, unit: str = "") -> str:
    if found is None:
        return words.DASH
    value = told(found.mean)
    if float(value) == 0:
        value = value.removeprefix("-")
    sign = "+" if signed and found.mean > 0 and float(value) > 0 else ""
    reach = "" if found.half_width is None else f" \N{PLUS-MINUS SIGN}{told(found.half_width)}"
    return f"{sign}{value}{reach}{unit}"
