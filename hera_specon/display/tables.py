"""Tables at the end of a run and of the policies there are, drawn with rich."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controllers.results import RunResult
from hera_specon.display import words
from hera_specon.report.comparison import ComparisonRow, comparison_rows

COLUMNS = (
    "policy",
    "makespan",
    "mean completion",
    "median completion",
    "trials faster",
    "worst loser",
    "moves/resizes",
)


def comparison_table(results: Sequence[RunResult]) -> RenderableType:
    """Return the table that ends a run; the first policy is the baseline of those after it."""
    rows = comparison_rows(results)
    compared = len(rows) > 1
    titles = COLUMNS if compared else (*COLUMNS[:4], COLUMNS[-1])
    table = Table(title="How the policies compare" if compared else "How the sweep went", title_justify="left")
    for title in titles:
        table.add_column(title, justify="left" if title == "policy" else "right", overflow="fold")
    for row in rows:
        table.add_row(*(cells(row) if compared else (*cells(row)[:4], cells(row)[-1])))
    return Group(table, *(Text(note, style="bold red") for note in warnings(rows)))


def cells(row: ComparisonRow) -> tuple[str, ...]:
    """Return a row's cells; ratios below 1 are gains over the baseline."""
    result, against = row.result, row.against
    moved = f"{row.moves}/{row.resizes}"
    if against is None:
        times = (result.makespan_s, result.mean_completion_s, result.median_completion_s)
        return (result.policy, *(words.seconds(value) for value in times), words.DASH, words.DASH, moved)
    return (
        result.policy,
        _with_change(result.makespan_s, against.makespan_ratio),
        _with_change(result.mean_completion_s, against.mean_ratio),
        _with_change(result.median_completion_s, against.median_ratio),
        f"{row.faster} of {len(result.trials)} ({row.slower} slower)",
        f"{against.worst_loser_id} {words.ratio(against.worst_loser)}",
        moved,
    )


def _with_change(value: float, ratio: float) -> str:
    return f"{words.seconds(value)}\n{words.ratio(ratio)} ({words.change(ratio)})"


def warnings(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return what to know before believing the figures."""
    return [
        f"{row.failed} of {len(row.result.trials)} trials failed under {row.result.policy}: "
        "their times are those of failures"
        for row in rows
        if row.failed
    ]
