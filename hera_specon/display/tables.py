"""Tables at the end of a run and of the policies there are, drawn with rich."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controllers.core.results import RunResult
from hera_specon import formatting
from hera_specon.records.comparison import ComparisonRow, comparison_rows

TITLES = ("makespan", "mean completion", "median completion", "trials faster", "worst loser", "moves", "resizes")
ONLY_COMPARED = frozenset({"trials faster", "worst loser"})


def comparison_table(results: Sequence[RunResult]) -> RenderableType:
    """Return the table that ends a run, a column per policy; the first is the baseline of those after it."""
    rows = comparison_rows(results)
    compared = len(rows) > 1
    table = Table(title="How the policies compare" if compared else "How the sweep went", box=box.SIMPLE_HEAD)
    table.title_justify = "left"
    table.add_column()
    for row in rows:
        table.add_column(Text(formatting.printable(row.result.policy)), justify="right", overflow="fold")
    if any(row.result.deadlines.asked for row in rows):
        met = [f"{row.result.deadlines.met} of {row.result.deadlines.asked}" for row in rows]
        table.add_row("deadlines met", *map(Text, met))
    for title, *told in zip(TITLES, *(cells(row) for row in rows), strict=True):
        if compared or title not in ONLY_COMPARED:
            table.add_row(title, *(Text(formatting.printable(cell)) for cell in told))
    return Group(table, *(Text(formatting.printable(note), style="bold red") for note in warnings(rows)))


def cells(row: ComparisonRow) -> tuple[str, ...]:
    """Return what stands under each of the titles; ratios below 1 are gains over the baseline."""
    result, against = row.result, row.against
    counts = (str(row.moves), str(row.resizes))
    if against is None:
        times = (result.makespan_s, result.mean_completion_s, result.median_completion_s)
        return (*(formatting.seconds(value) for value in times), formatting.DASH, formatting.DASH, *counts)
    return (
        _with_change(result.makespan_s, against.makespan_ratio),
        _with_change(result.mean_completion_s, against.mean_ratio),
        _with_change(result.median_completion_s, against.median_ratio),
        f"{row.faster} of {len(result.trials)} ({row.slower} slower)",
        f"{against.worst_loser_id} {formatting.ratio(against.worst_loser)} ({formatting.change(against.worst_loser)})",
        *counts,
    )


def _with_change(value: float, ratio: float) -> str:
    return f"{formatting.seconds(value)}  {formatting.ratio(ratio)} ({formatting.change(ratio)})"


def warnings(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return what to know before believing the figures."""
    return [
        f"{row.failed} of {len(row.result.trials)} trials failed under {row.result.policy}: "
        "their times are those of failures"
        for row in rows
        if row.failed
    ]
