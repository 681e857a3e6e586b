"""Tables of the trials and nodes of a sweep, drawn with rich: for the live screen and ``specon status``."""

from collections.abc import Sequence

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from controllers.core.forecast import EndRange
from controllers.core.model import Category, Phase, Snapshot
from hera_specon import formatting
from hera_specon.sweep_state import NodeRow, SweepState, TrialCounts, TrialRow, best_so_far, front_lines

CATEGORY_STYLE = {Category.PROGRESSING: "blue", Category.WATCHING: "yellow", Category.CONVERGED: "magenta"}
PHASE_STYLE = {
    Phase.PENDING: "dim",
    Phase.RUNNING: "",
    Phase.MOVING: "cyan",
    Phase.SUSPENDING: "cyan",
    Phase.SUSPENDED: "dim",
    Phase.STOPPING: "cyan",
    Phase.SUCCEEDED: "green",
    Phase.STOPPED: "green dim",
    Phase.FAILED: "bold red",
}
NEUTRAL = "cyan"
BAR_WIDTH = 14
SHARE_WIDTH = 8
LONGEST_ID = 24
"""Characters of a trial's id that are shown even where lines are short."""
TITLES = (
    "trial", "category", "node", "share", "cores", "progress", "ends in", "step", "objective", "moves", "last action",
)  # fmt: skip
ONLY_WIDE = frozenset({"share", "ends in", "step", "last action"})


def in_words(left: EndRange | None) -> str:
    """Return the seconds that are left as people say them, empty where they are not known."""
    return "" if left is None else formatting.span(left.low, left.likely, left.high)


def when_it_ends(tally: TrialCounts, left: EndRange | None) -> str:
    """Return when the sweep will end; empty once all its trials have."""
    if tally.ended == tally.total:
        return ""
    return f"ends in about {in_words(left)}" if left is not None else "time left not known yet"


def taken_by_others(snapshot: Snapshot) -> str:
    """Return how many cores others use, as far as trials lack them; empty where they lack none.

    It stands beside the time left, which is less certain then.
    """
    taken = sum(node.cpu - node.supplied for node in snapshot.nodes)
    cores = sum(node.cpu for node in snapshot.nodes)
    return f"others use {taken:.2g} of {cores:.3g} cores" if taken > 0 else ""


def headline(
    tally: TrialCounts, elapsed: float, left: EndRange | None, others: str = "", *, over: bool = False
) -> RenderableType:
    """Return the sweep's own bar: trials ended, running, moving, failed, the time left, and what ``others`` take."""
    bar = _bar(tally.ended / max(1, tally.total), 30, "green")
    parts = [f"{tally.ended} of {tally.total} trials ended", f"{tally.running} running"]
    parts += [f"{tally.moving} moving"] if tally.moving else []
    parts += [f"{tally.suspended} suspended"] if tally.suspended else []
    parts += [f"{tally.stopped} stopped"] if tally.stopped else []
    parts += [f"[bold red]{tally.failed} failed[/]"] if tally.failed else []
    times = [f"{formatting.seconds(elapsed)} elapsed"]
    times += [soon] if not over and (soon := when_it_ends(tally, left)) else []
    times += [others] if others else []
    about = Text.from_markup(f" {', '.join(parts)}; {', '.join(times)}")
    return Padding(Columns([bar, about], padding=(0, 1)), (0, 0, 1, 0))


def best_lines(snapshot: Snapshot) -> list[str]:
    """Return a line for each sweep: the best value so far, and who came to it with which hyperparameters.

    Of several objectives it tells how many trials are on the front, and the first few of them.
    """
    return front_lines(snapshot) + [
        formatting.printable(
            f"best so far: {formatting.figure(value)} by {formatting.short_id(trial.id)} "
            f"{formatting.params(dict(trial.parameters))}".rstrip()
        )
        for trial, value in best_so_far(snapshot)
    ]


def _bar(part: float, width: int, style: str) -> ProgressBar:
    return ProgressBar(total=1.0, completed=min(1.0, part), width=width, complete_style=style, finished_style=style)


def trials_board(rows: Sequence[TrialRow], hidden: int, *, wide: bool) -> RenderableType:
    """Return the trials' table, and how many are ``hidden`` since there is no room for them.

    A terminal that is not ``wide`` gets the columns that tell most.
    """
    table = Table(box=None, expand=True, pad_edge=False, header_style="dim")
    shown = [title for title in TITLES if wide or title not in ONLY_WIDE]
    for title in shown:
        table.add_column(title, no_wrap=True, ratio=1 if title == "last action" else None)
    table.columns[0].min_width = min(LONGEST_ID, max((len(formatting.short_id(row.id)) for row in rows), default=0))
    for row in rows:
        word = row.category.value if row.phase is Phase.RUNNING and row.category else row.outcome
        cells = {
            "trial": Text(formatting.short_id(row.id), style="bold" if not row.phase.ended else "dim"),
            "category": Text(word, style=_style(row)),
            "node": Text(row.node),
            "share": _bar(row.share, SHARE_WIDTH, NEUTRAL) if row.share else Text(""),
            "cores": Text(_cores(row) if row.share else "", style="dim"),
            "progress": _bar(row.done or 0.0, BAR_WIDTH, _style(row) or NEUTRAL),
            "ends in": Text(in_words(row.left), style="dim"),
            "step": Text(f"{row.step}/{row.steps_total or '?'}" if row.step else "", style="dim"),
            "objective": Text(formatting.figure(row.metric)),
            "moves": Text(str(row.moves) if row.moves else ""),
            "last action": Text(row.note, style="dim"),
        }
        table.add_row(*(cells[title] for title in shown))
    return Group(table, Text(f"and {hidden} more, waiting or ended", style="dim")) if hidden > 0 else table


def _cores(row: TrialRow) -> str:
    """Return the share of a trial, of each of its workers where it has several."""
    return formatting.cores(row.cpu) if row.workers == 1 else f"{row.workers} x {formatting.cores(row.cpu)}"


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


def status_table(state: SweepState, most: int | None = None) -> RenderableType:
    """Return the sweep as people read it; at most ``most`` trials if not all of them fit."""
    rows = state.rows
    shown = rows if most is None else rows[:most]
    name, where = formatting.printable(state.name), formatting.printable(state.where)
    policy = f"policy {formatting.printable(state.policy)}; {formatting.printable(state.steered)}"
    pieces: list[RenderableType] = [
        Text.assemble((name, "bold"), f"  {where}: {formatting.printable(state.phase)}"),
        Text(policy, style="dim"),
        headline(state.counted, state.snapshot.now, state.left, over=state.over),
        *(Text(line) for line in best_lines(state.snapshot)),
        *(Text(formatting.printable(f"{sweep} was ended: {why}")) for sweep, why in state.endings.items()),
        *([Text(f"cost so far: {formatting.amount(state.cost)}")] if state.cost is not None else []),
    ]
    if rows:
        pieces.append(_status_rows(shown))
    if len(rows) > len(shown):
        pieces.append(Text(f"and {len(rows) - len(shown)} more, waiting or ended", style="dim"))
    told = (*state.warnings, *state.missing)
    return Group(*pieces, *(Text(formatting.printable(what), style="yellow") for what in told))


def _status_rows(rows: Sequence[TrialRow]) -> Table:
    """Return the table of ``rows``; it has columns for forecasts, processes and outlooks only if there are any."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for row in rows:
        category = (row.category.value, CATEGORY_STYLE[row.category]) if row.category else (formatting.DASH, "dim")
        cells = {
            "trial": (formatting.short_id(row.id), "bold" if not row.phase.ended else "dim"),
            "phase": (
                row.outcome + (" (gated)" if row.gated and row.phase is Phase.PENDING else ""),
                PHASE_STYLE[row.phase],
            ),
            "node": (row.node, ""),
            "cpu now/base": (f"{_cores(row)}/{formatting.cores(row.base_cpu)}", ""),
            "attempt": (str(row.attempt or formatting.DASH), ""),
            "moves": (str(row.moves), ""),
            "category": category,
            "growth": (formatting.figure(row.growth), "dim"),
            "step": (formatting.DASH if row.step is None else f"{row.step}/{row.steps_total or '?'}", "dim"),
            "metric": (formatting.figure(row.metric), ""),
        }
        if any(other.left for other in rows):
            cells["ends in"] = (in_words(row.left), "")
        if any(other.pids for other in rows):
            cells["pid"] = (", ".join(map(str, row.pids)), "dim")
        cells["reason"] = (row.reason, "dim")
        if any(other.outlook for other in rows):
            cells["outlook"] = (row.outlook, "yellow")
        if not table.columns:
            for title in cells:
                long = title in {"reason", "outlook"}  # their text may take several lines
                table.add_column(title, no_wrap=not long, overflow="fold" if long else "ellipsis")
        table.add_row(*(Text(formatting.printable(cell), style=style) for cell, style in cells.values()))
    return table
