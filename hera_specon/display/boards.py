"""The pieces of the live view, drawn with rich from rows that ``rows`` worked out."""

from collections.abc import Sequence

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from controllers.core.model import Category, Phase
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
NEUTRAL = "cyan"
BAR_WIDTH = 14
SHARE_WIDTH = 8
LONGEST_ID = 24
"""Characters of a trial's id that are shown even where lines are short."""
TITLES = ("trial", "category", "node", "share", "cores", "progress", "step", "objective", "moves", "last action")
ONLY_WIDE = frozenset({"share", "step", "last action"})


def headline(tally: Tally, elapsed: float, left: float | None) -> RenderableType:
    """Return the sweep's own bar: trials ended, running, moving, failed, and the time left."""
    bar = _bar(tally.ended / max(1, tally.total), 30, "green")
    parts = [f"{tally.ended} of {tally.total} trials ended", f"{tally.running} running"]
    parts += [f"{tally.moving} moving"] if tally.moving else []
    parts += [f"[bold red]{tally.failed} failed[/]"] if tally.failed else []
    soon = f", about {words.seconds(left)} left" if left is not None else ", time left not known yet"
    soon = "" if left == 0 else soon
    about = Text.from_markup(f" {', '.join(parts)}; {words.seconds(elapsed)} elapsed{soon}")
    return Padding(Columns([bar, about], padding=(0, 1)), (0, 0, 1, 0))


def _bar(part: float, width: int, style: str) -> ProgressBar:
    return ProgressBar(total=1.0, completed=min(1.0, part), width=width, complete_style=style, finished_style=style)


def trials_board(rows: Sequence[TrialRow], room: int, *, wide: bool) -> RenderableType:
    """Return the trials' table, at most ``room`` rows of it; trials at work come first.

    A terminal that is not ``wide`` gets the columns that tell most.
    """
    table = Table(box=None, expand=True, pad_edge=False, header_style="dim")
    shown = [title for title in TITLES if wide or title not in ONLY_WIDE]
    for title in shown:
        table.add_column(title, no_wrap=True, ratio=1 if title == "last action" else None)
    table.columns[0].min_width = min(LONGEST_ID, max((len(words.short_id(row.id)) for row in rows), default=0))
    for row in rows[:room]:
        cells = dict(zip(TITLES, _cells(row), strict=True))
        table.add_row(*(cells[title] for title in shown))
    hidden = len(rows) - room
    return Group(table, Text(f"and {hidden} more, waiting or ended", style="dim")) if hidden > 0 else table


def _cells(row: TrialRow) -> tuple[RenderableType, ...]:
    return (
        Text(words.short_id(row.id), style="bold" if not row.phase.ended else "dim"),
        _category(row),
        Text(row.node),
        _bar(row.share, SHARE_WIDTH, NEUTRAL) if row.share else Text(""),
        Text(words.cores(row.cpu) if row.share else "", style="dim"),
        _bar(row.done or 0.0, BAR_WIDTH, _style(row) or NEUTRAL),
        Text(f"{row.step}/{row.steps_total or '?'}" if row.step else "", style="dim"),
        Text(words.figure(row.latest)),
        Text(str(row.moves) if row.moves else ""),
        Text(row.reason, style="dim"),
    )


def _category(row: TrialRow) -> Text:
    word = row.category if row.phase is Phase.RUNNING and row.category else row.phase
    return Text(word.value, style=_style(row))


def _style(row: TrialRow) -> str:
    if row.phase is Phase.RUNNING and row.category is not None:
        return CATEGORY_STYLE[row.category]
    return PHASE_STYLE[row.phase]


def nodes_board(rows: Sequence[NodeRow]) -> RenderableType:
    """Return a line per node: how busy it is, and how much of it its trials hold."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("node", "busy", "", "trials"):
        table.add_column(title, no_wrap=True)
    for row in rows:
        busy = _bar(row.used / row.cpu if row.cpu else 0.0, BAR_WIDTH, NEUTRAL)
        used = f"{words.cores(row.used)} of {words.cores(row.cpu)} cores, {words.cores(row.given)} given"
        table.add_row(Text(row.name, style="" if row.ready else "red"), busy, Text(used, style="dim"), str(row.trials))
    return Padding(table, (1, 0, 0, 0))
