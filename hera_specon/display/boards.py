"""Tables of the trials and nodes of a sweep, drawn with rich: for the live screen and ``specon status``."""

from collections.abc import Sequence

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from controllers.core.model import Category, Phase
from hera_specon import formatting
from hera_specon.sweep_state import NodeRow, StateRow, SweepState, Tally, TrialRow, state_rows

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
    soon = f", about {formatting.seconds(left)} left" if left is not None else ", time left not known yet"
    soon = "" if left == 0 else soon
    about = Text.from_markup(f" {', '.join(parts)}; {formatting.seconds(elapsed)} elapsed{soon}")
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
    table.columns[0].min_width = min(LONGEST_ID, max((len(formatting.short_id(row.id)) for row in rows), default=0))
    for row in rows[:room]:
        cells = dict(zip(TITLES, _cells(row), strict=True))
        table.add_row(*(cells[title] for title in shown))
    hidden = len(rows) - room
    return Group(table, Text(f"and {hidden} more, waiting or ended", style="dim")) if hidden > 0 else table


def _cells(row: TrialRow) -> tuple[RenderableType, ...]:
    word = row.category if row.phase is Phase.RUNNING and row.category else row.phase
    return (
        Text(formatting.short_id(row.id), style="bold" if not row.phase.ended else "dim"),
        Text(word.value, style=_style(row)),
        Text(row.node),
        _bar(row.share, SHARE_WIDTH, NEUTRAL) if row.share else Text(""),
        Text(formatting.cores(row.cpu) if row.share else "", style="dim"),
        _bar(row.done or 0.0, BAR_WIDTH, _style(row) or NEUTRAL),
        Text(f"{row.step}/{row.steps_total or '?'}" if row.step else "", style="dim"),
        Text(formatting.figure(row.latest)),
        Text(str(row.moves) if row.moves else ""),
        Text(row.reason, style="dim"),
    )


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
        used = f"{formatting.cores(row.used)} of {formatting.cores(row.cpu)} cores, {formatting.cores(row.given)} given"
        table.add_row(Text(row.name, style="" if row.ready else "red"), busy, Text(used, style="dim"), str(row.trials))
    return Padding(table, (1, 0, 0, 0))


STATUS_TITLES = (
    *("trial", "phase", "node", "cpu now/base", "attempt", "moves", "category", "growth", "step", "metric", "reason"),
)

LONG = frozenset({"reason", "outlook"})
"""Columns whose text may take several lines. That of outlooks is there where a policy foresees anything."""


def status_view(state: SweepState, room: int | None = None) -> RenderableType:
    """Return the sweep as people read it; at most ``room`` trials where not all would fit."""
    rows = state_rows(state)
    shown = rows if room is None else rows[:room]
    hidden = len(rows) - len(shown)
    title = Text.assemble(
        (formatting.printable(state.name), "bold"), f"  {formatting.printable(state.where)}: {state.phase}"
    )
    policy = Text(f"policy {formatting.printable(state.policy)}; {formatting.printable(state.steered)}", style="dim")
    pieces: list[RenderableType] = [*[title, policy], headline(state.counted, state.snapshot.now, state.left)]
    if rows:
        pieces.append(_table(shown))
    if hidden > 0:
        pieces.append(Text(f"and {hidden} more, waiting or ended", style="dim"))
    return Group(*pieces, *(Text(formatting.printable(what), style="yellow") for what in state.missing))


def _table(rows: Sequence[StateRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    foreseen = any(row.outlook for row in rows)
    for title in (*STATUS_TITLES, "outlook") if foreseen else STATUS_TITLES:
        long = title in LONG
        table.add_column(title, no_wrap=not long, overflow="fold" if long else "ellipsis")
    for row in rows:
        told = (*_status_cells(row), (row.outlook, "yellow")) if foreseen else _status_cells(row)
        cells = (Text(formatting.printable(cell), style=style) for cell, style in told)
        table.add_row(*cells)
    return table


def _status_cells(row: StateRow) -> tuple[tuple[str, str], ...]:
    phase = Phase(row.phase.split(" ", 1)[0])
    return (
        (row.trial, "bold" if not phase.ended else "dim"),
        (row.phase, PHASE_STYLE[phase]),
        (row.node, ""),
        (f"{formatting.cores(row.cpu)}/{formatting.cores(row.base_cpu)}", ""),
        (str(row.attempt or formatting.DASH), ""),
        (str(row.moves), ""),
        (row.category or formatting.DASH, CATEGORY_STYLE[Category(row.category)] if row.category else "dim"),
        (formatting.figure(row.growth), "dim"),
        (formatting.DASH if row.step is None else f"{row.step}/{row.steps_total or '?'}", "dim"),
        (formatting.figure(row.metric), ""),
        (row.reason, "dim"),
    )
