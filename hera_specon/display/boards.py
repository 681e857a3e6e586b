"""The pieces of the live view, drawn with rich from rows that ``rows`` worked out."""

from collections.abc import Sequence

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from controllers.model import Category, Phase
from hera_specon.display import words
from hera_specon.display.rows import NodeRow, Tally, TrialRow

CATEGORY_STYLE = {Category.PROGRESSING: "blue", Category.WATCHING: "yellow", Category.CONVERGED: "magenta"}
PHASE_STYLE = {
    Phase.PENDING: "dim",
    Phase.RUNNING: "",
    Phase.MOVING: "cyan",
    Phase.SUCCEEDED: "green",
    Phase.FAILED: "bold red",
}
BAR_WIDTH = 14
SHARE_WIDTH = 8


def headline(tally: Tally, elapsed: float, left: float | None) -> RenderableType:
    """Return the sweep's own bar: trials ended, running, moving, failed, and the time left."""
    bar = ProgressBar(total=max(1, tally.total), completed=tally.ended, width=30)
    parts = [f"{tally.ended} of {tally.total} trials ended", f"{tally.running} running"]
    parts += [f"{tally.moving} moving"] if tally.moving else []
    parts += [f"[bold red]{tally.failed} failed[/]"] if tally.failed else []
    soon = f"about {words.seconds(left)} left" if left is not None else "time left not known yet"
    about = Text.from_markup(f" {', '.join(parts)}; {words.seconds(elapsed)} elapsed, {soon}")
    return Columns([bar, about], padding=(0, 1))


def trials_board(rows: Sequence[TrialRow], room: int) -> RenderableType:
    """Return the trials' table, at most ``room`` rows of it; trials at work come first."""
    table = Table(box=None, expand=True, pad_edge=False, header_style="dim")
    for title in ("trial", "category", "node", "share", "", "progress", "", "objective", "moves"):
        table.add_column(title, no_wrap=True)
    table.add_column("last action", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in rows[:room]:
        table.add_row(*_cells(row))
    hidden = len(rows) - room
    return Group(table, Text(f"and {hidden} more, waiting or ended", style="dim")) if hidden > 0 else table


def _cells(row: TrialRow) -> tuple[RenderableType, ...]:
    total = row.steps_total or DASHES
    return (
        Text(row.id, style="bold" if not row.phase.ended else "dim"),
        _category(row),
        Text(row.node),
        ProgressBar(total=1.0, completed=row.share, width=SHARE_WIDTH) if row.share else Text(""),
        Text(words.cores(row.cpu) if row.share else "", style="dim"),
        ProgressBar(total=1.0, completed=row.done or 0.0, width=BAR_WIDTH),
        Text(f"{row.step}/{total}" if row.step else "", style="dim"),
        Text(words.figure(row.latest)),
        Text(str(row.moves) if row.moves else ""),
        Text(row.reason, style="dim"),
    )


DASHES = "?"


def _category(row: TrialRow) -> Text:
    if row.phase is Phase.RUNNING and row.category is not None:
        return Text(row.category.value, style=CATEGORY_STYLE[row.category])
    return Text(row.phase.value, style=PHASE_STYLE[row.phase])


def nodes_board(rows: Sequence[NodeRow]) -> RenderableType:
    """Return a line per node: how busy it is, and how much of it its trials hold."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("node", "busy", "", "trials"):
        table.add_column(title, no_wrap=True)
    for row in rows:
        busy = ProgressBar(total=max(row.cpu, 1e-9), completed=min(row.used, row.cpu), width=BAR_WIDTH)
        used = f"{words.cores(row.used)} of {words.cores(row.cpu)} cores, {words.cores(row.given)} given"
        table.add_row(Text(row.name, style="" if row.ready else "red"), busy, Text(used, style="dim"), str(row.trials))
    return table
