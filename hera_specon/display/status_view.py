"""``specon status`` drawn with rich."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controllers.core.model import Category, Phase
from hera_specon.display import words
from hera_specon.display.boards import CATEGORY_STYLE, PHASE_STYLE, headline
from hera_specon.display.state import StateRow, SweepState, state_rows

TITLES = (
    *("trial", "phase", "node", "cpu now/base", "attempt", "moves", "category", "growth", "step", "metric", "reason"),
)

LONG = frozenset({"reason", "outlook"})
"""Columns whose text may take several lines. That of outlooks is there where a policy foresees anything."""


def status_view(state: SweepState, room: int | None = None) -> RenderableType:
    """Return the sweep as people read it; at most ``room`` trials where not all would fit."""
    rows = state_rows(state)
    shown = rows if room is None else rows[:room]
    hidden = len(rows) - len(shown)
    pieces: list[RenderableType] = [*_head(state), headline(state.counted, state.snapshot.now, state.left)]
    if rows:
        pieces.append(_table(shown))
    if hidden > 0:
        pieces.append(Text(f"and {hidden} more, waiting or ended", style="dim"))
    return Group(*pieces, *(Text(words.printable(what), style="yellow") for what in state.missing))


def _head(state: SweepState) -> list[RenderableType]:
    title = Text.assemble((words.printable(state.name), "bold"), f"  {words.printable(state.where)}: {state.phase}")
    policy = Text(f"policy {words.printable(state.policy)}; {words.printable(state.steered)}", style="dim")
    return [title, policy]


def _table(rows: Sequence[StateRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    foreseen = any(row.outlook for row in rows)
    for title in (*TITLES, "outlook") if foreseen else TITLES:
        long = title in LONG
        table.add_column(title, no_wrap=not long, overflow="fold" if long else "ellipsis")
    for row in rows:
        told = (*_cells(row), (row.outlook, "yellow")) if foreseen else _cells(row)
        cells = (Text(words.printable(cell), style=style) for cell, style in told)
        table.add_row(*cells)
    return table


def _cells(row: StateRow) -> tuple[tuple[str, str], ...]:
    phase = Phase(row.phase.split(" ", 1)[0])
    return (
        (row.trial, "bold" if not phase.ended else "dim"),
        (row.phase, PHASE_STYLE[phase]),
        (row.node, ""),
        (f"{words.cores(row.cpu)}/{words.cores(row.base_cpu)}", ""),
        (str(row.attempt or words.DASH), ""),
        (str(row.moves), ""),
        (row.category or words.DASH, CATEGORY_STYLE[Category(row.category)] if row.category else "dim"),
        (words.figure(row.growth), "dim"),
        (words.DASH if row.step is None else f"{row.step}/{row.steps_total or '?'}", "dim"),
        (words.figure(row.metric), ""),
        (row.reason, "dim"),
    )
