"""Tables at the end of a run and of the policies there are, drawn with rich."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controllers.core.objectives import missing_objectives, not_counted
from controllers.core.results import RunResult, told_again, told_endings, told_remarks
from hera_specon import formatting
from hera_specon.display.front_table import front_tables
from hera_specon.records.comparison import ComparisonRow, comparison_rows, idle
from hera_specon.records.repeats import RatioRange, compare_repeats

TITLES = ("makespan", "mean completion", "median completion", "trials faster", "worst loser", "moves", "resizes")
MOST_DIVERGED = 5
"""Trials whose divergence is told one by one."""
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
    early = {
        "changes of size": [row.scales for row in rows],
        "suspensions": [row.suspensions for row in rows],
        "ended early": [row.ended_early for row in rows],
    }
    for title, counts in early.items():
        if any(counts):
            table.add_row(title, *map(str, counts))
    costs = [row.result.cost for row in rows]
    if any(cost is not None for cost in costs):
        table.add_row("cost", *(formatting.amount(cost) for cost in costs))
    delivered = [row.cores_delivered for row in rows]
    if None not in delivered:
        table.add_row("CPU delivered", *(f"{formatting.cores(cores or 0.0)} cores" for cores in delivered))
    if any(row.others for row in rows):
        table.add_row("CPU of others", *(f"{formatting.cores(row.others)} cores" for row in rows))
    notes = (Text(formatting.printable(note), style="yellow") for note in noise(rows))
    failed = (Text(formatting.printable(note), style="bold red") for note in warnings(rows))
    ended = (Text(formatting.printable(told)) for row in rows for told in told_endings(row.result))
    return Group(table, *ended, *failed, *notes)


def repeats_table(results: Sequence[RunResult]) -> RenderableType:
    """Return how policies that ran several times compare, with ranges; nothing where none did."""
    rows = compare_repeats(results, idle)
    if not rows:
        return Group()
    table = Table(title=f"Over all runs, against {formatting.printable(rows[0].policy)}", box=box.SIMPLE_HEAD)
    table.title_justify = "left"
    for title in ("policy", "runs", "makespan", "95 % range", "mean completion", "95 % range", ""):
        table.add_column(title, justify="left" if title in {"policy", ""} else "right")
    for row in rows:
        style = {"faster": "green", "slower": "red"}.get(row.verdict, "")
        told = (row.policy, str(len(row.runs)), *_ranges(row.makespan), *_ranges(row.mean_completion))
        table.add_row(*(Text(formatting.printable(cell)) for cell in told), Text(row.verdict, style=style))
    return table


def _ranges(told: RatioRange | None) -> tuple[str, str]:
    if told is None:
        return formatting.DASH, formatting.DASH
    return formatting.change(told.ratio), f"{formatting.change(told.low)} to {formatting.change(told.high)}"


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


def leaderboard(result: RunResult, most: int = 5) -> RenderableType:
    """Return the best trials of each sweep with their hyperparameters, at most ``most`` of each."""
    tables, by_sweep = [], result.ranking()
    for sweep, ranked in by_sweep.items():
        of_sweep = f" of {formatting.printable(sweep)}" if len(by_sweep) > 1 else ""
        table = Table(title=f"The best models{of_sweep}", box=box.SIMPLE_HEAD)
        table.title_justify = "left"
        table.add_column("trial")
        table.add_column(formatting.printable(ranked[0].objective) or "objective", justify="right")
        table.add_column("hyperparameters", overflow="fold")
        for trial in ranked[:most]:
            told = [trial.id, formatting.figure(trial.final_metric), formatting.params(trial.params)]
            early = " (ended early)" if trial.stopped else ""
            table.add_row(*(Text(formatting.printable(cell)) for cell in (told[0] + early, *told[1:])))
        tables.append(table)
    return Group(*tables, *front_tables(result, most))


def noise(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return which differences mean nothing."""
    base = rows[0].result.policy if rows else ""
    return [f"{row.result.policy} took no action: what differs from {base} is noise" for row in rows if row.idle]


def warnings(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return what to know before believing the figures."""
    failed = [
        f"{row.failed} of {len(row.result.trials)} trials failed under {row.result.policy}: "
        "their times are those of failures"
        for row in rows
        if row.failed
    ]
    diverged = [
        f"{trial.id} diverged under {row.result.policy}: its objective ended as {trial.final_metric}"
        for row in rows
        for trial in row.result.trials
        if trial.diverged
    ]
    again = [told for row in rows for told in told_again({trial.id: trial.begun_again for trial in row.result.trials})]
    remarks = [told for row in rows for told in told_remarks({trial.id: trial.remark for trial in row.result.trials})]
    silent = [warning for row in rows for warning in missing_objectives(row.result).warnings]
    more = [f"and {len(diverged) - MOST_DIVERGED} more diverged"] if len(diverged) > MOST_DIVERGED else []
    uncounted = [told for row in rows for told in not_counted(row.result)]
    return [*failed, *diverged[:MOST_DIVERGED], *more, *again, *remarks, *silent, *uncounted]
