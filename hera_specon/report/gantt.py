"""The Gantt chart: trials over nodes and time, a panel per policy, one time axis."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from hera_specon import formatting
from hera_specon.records.history import Move, Stretch, SweepHistory
from hera_specon.records.run_folder import PolicyRun
from hera_specon.report.style import CATEGORIES, GRID, category_colour, category_label, dress, html, text

LANE_HEIGHT = 22
PANEL_EXTRA = 46
SHORTEST_NAMED = 0.05
"""Part of the sweep's time that a bar must last to carry its trial's name."""
LABELS = (*CATEGORIES, "not judged", "moving")


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of a trial on its node's lane; lanes count from 0 on each node."""

    stretch: Stretch
    lane: int


@dataclass(frozen=True, slots=True)
class Band:
    """A node's rows on the chart: ``lanes`` of them from row ``top`` down."""

    node: str
    top: int
    lanes: int
    bars: tuple[Bar, ...]


def bands(history: SweepHistory) -> tuple[Band, ...]:
    """Lay the trials of each node out in as few lanes as keep them apart, nodes one under the other."""
    laid: list[Band] = []
    for node in history.nodes():
        bars = _lanes([visit for visit in _visits(history) if visit[0].node == node])
        top = laid[-1].top + laid[-1].lanes if laid else 0
        laid.append(Band(node, top, 1 + max(bar.lane for bar in bars), tuple(bars)))
    return tuple(laid)


def _visits(history: SweepHistory) -> list[list[Stretch]]:
    """Return each unbroken stay of a trial's worker on a node, with neighbours that look alike joined."""
    stays: list[list[Stretch]] = []
    for placed in (worker for stretches in history.stretches.values() for worker in _workers(stretches)):
        for before, stretch in pairwise([None, *placed]):
            if stretch is None:
                continue
            if before is None or before.node != stretch.node or before.end != stretch.start:
                stays.append([stretch])
            elif (stays[-1][-1].phase, stays[-1][-1].category) == (stretch.phase, stretch.category):
                stays[-1][-1] = replace(stretch, start=stays[-1][-1].start)
            else:
                stays[-1].append(stretch)
    return stays


def _workers(stretches: Sequence[Stretch]) -> list[list[Stretch]]:
    """Return the stretches of each worker of a trial, by rank, as if it were alone on its node."""
    most = max((len(stretch.places) for stretch in stretches), default=0)
    return [
        [replace(stretch, node=stretch.places[rank]) for stretch in stretches if rank < len(stretch.places)]
        for rank in range(most)
    ]


def _lanes(visits: Sequence[Sequence[Stretch]]) -> list[Bar]:
    free_at: list[float] = []
    bars: list[Bar] = []
    for visit in sorted(visits, key=lambda stay: (stay[0].start, stay[0].trial)):
        lane = next((i for i, free in enumerate(free_at) if free <= visit[0].start), len(free_at))
        free_at[lane : lane + 1] = [visit[-1].end]
        bars += [Bar(stretch, lane) for stretch in visit]
    return bars


@dataclass(frozen=True, slots=True)
class _Placed:
    """A bar with its row on the chart."""

    row: int
    stretch: Stretch
    first: bool


def gantt(runs: Sequence[PolicyRun]) -> str:
    """Return the chart of every policy's run, one under the other, as HTML."""
    laid = [bands(run.history) for run in runs]
    heights = [max(1, sum(band.lanes for band in of_run)) * LANE_HEIGHT for of_run in laid]
    total = sum(heights) + PANEL_EXTRA * len(runs) + 60
    figure = make_subplots(
        rows=len(runs),
        cols=1,
        shared_xaxes=True,
        row_heights=[height / sum(heights) for height in heights],
        vertical_spacing=min(0.5 / len(runs), PANEL_EXTRA / total),
        subplot_titles=[f"<b>{text(run.policy)}</b>" for run in runs],
    )
    seen: set[str] = set()
    for row, (run, of_run) in enumerate(zip(runs, laid, strict=True), start=1):
        _panel(figure, row, run, of_run, seen)
    figure.update_annotations(x=0, xanchor="left", font_size=13)
    figure.update_layout(barmode="overlay", legend_traceorder="normal")
    end = max(run.history.end for run in runs)
    figure.update_xaxes(range=[0, end * 1.01])
    figure.update_xaxes(title_text="seconds since the sweep began", row=len(runs), col=1)
    dress(figure, total)
    figure.update_layout(legend_y=1.0 + 26 / total, margin_t=56)
    return html(figure)


def _panel(figure: go.Figure, row: int, run: PolicyRun, laid: Sequence[Band], seen: set[str]) -> None:
    placed = [_place(band, bar) for band in laid for bar in band.bars]
    labels = {category_label(p.stretch.phase, p.stretch.category) for p in placed}
    for label in (name for name in LABELS if name in labels):
        same = [p for p in placed if category_label(p.stretch.phase, p.stretch.category) == label]
        figure.add_trace(_bars(same, label, show=label not in seen), row=row, col=1)
        seen.add(label)
    figure.add_trace(_names(placed, run.history.end), row=row, col=1)
    if run.history.moves:
        figure.add_trace(_moves(run.history.moves, placed, show="move" not in seen), row=row, col=1)
        seen.add("move")
    _node_axis(figure, row, laid)


def _place(band: Band, bar: Bar) -> _Placed:
    earlier = [b for b in band.bars if b.lane == bar.lane and b.stretch.end == bar.stretch.start]
    first = not any(b.stretch.trial == bar.stretch.trial for b in earlier)
    return _Placed(band.top + bar.lane, bar.stretch, first)


def _bars(placed: Sequence[_Placed], label: str, *, show: bool) -> go.Bar:
    first = placed[0].stretch
    return go.Bar(
        orientation="h",
        base=[p.stretch.start for p in placed],
        x=[p.stretch.end - p.stretch.start for p in placed],
        y=[p.row for p in placed],
        width=0.82,
        marker={"color": category_colour(first.phase, first.category), "line_width": 0},
        hovertext=[_hover(p.stretch) for p in placed],
        hoverinfo="text",
        name=label,
        legendgroup=label,
        showlegend=show,
    )


def _names(placed: Sequence[_Placed], end: float) -> go.Scatter:
    """Return the trials' names at the left of their bars, where the bars are long enough."""
    stays = [(p, _stay_end(p, placed)) for p in placed if p.first]
    shown = [p for p, until in stays if until - p.stretch.start >= end * SHORTEST_NAMED]
    return go.Scatter(
        x=[p.stretch.start for p in shown],
        y=[p.row for p in shown],
        text=[text(p.stretch.trial) for p in shown],
        mode="text",
        textposition="middle right",
        textfont={"color": "#ffffff", "size": 11},
        hoverinfo="skip",
        showlegend=False,
    )


def _stay_end(first: _Placed, placed: Sequence[_Placed]) -> float:
    own = [p.stretch for p in placed if p.row == first.row and p.stretch.trial == first.stretch.trial]
    return max(stretch.end for stretch in own)


def _hover(stretch: Stretch) -> str:
    lines = [
        f"<b>{text(stretch.trial)}</b>",
        f"{formatting.seconds(stretch.start)} to {formatting.seconds(stretch.end)} on {text(stretch.node)}",
        f"{category_label(stretch.phase, stretch.category)}, attempt {stretch.attempt or 1}",
    ]
    lines += [f"one of {len(stretch.nodes)} workers, on {text(', '.join(stretch.nodes))}"] if stretch.nodes else []
    lines += [f"share: {formatting.cores(stretch.cpu)} cores"] if stretch.cpu is not None else []
    lines += [f"<i>{text(stretch.reason)}</i>"] if stretch.reason else []
    return "<br>".join(lines)


def _moves(moves: Sequence[Move], placed: Sequence[_Placed], *, show: bool) -> go.Scatter:
    """Return thin lines from where a trial was to where it went on."""
    legs = [leg for move in moves if (leg := _leg(move, placed))]
    return go.Scatter(
        x=[x for (x0, _), (x1, _), _ in legs for x in (x0, x1, None)],
        y=[y for (_, y0), (_, y1), _ in legs for y in (y0, y1, None)],
        hovertext=[told for _, _, why in legs for told in (why, why, "")],
        hoverinfo="text",
        mode="lines+markers",
        line={"color": "#d64545", "width": 1.4, "dash": "dot"},
        marker={"size": 7, "symbol": "diamond", "color": "#d64545"},
        name="move",
        legendgroup="move",
        showlegend=show,
    )


def _leg(move: Move, placed: Sequence[_Placed]) -> tuple[tuple[float, int], tuple[float, int], str] | None:
    own = sorted((p for p in placed if p.stretch.trial == move.trial), key=lambda p: p.stretch.start)
    before = [p for p in own if p.stretch.start < move.at]
    after = [p for p in own if p.stretch.start >= move.at and p.stretch.node == move.target]
    if not before or not after:
        return None
    told = f"<b>{text(move.trial)}</b><br>{text(move.source)} → {text(move.target)}<br><i>{text(move.reason)}</i>"
    left = max((p.stretch.end for p in own if p.stretch.end <= after[0].stretch.start), default=move.at)
    return (left, before[-1].row), (after[0].stretch.start, after[0].row), told


def _node_axis(figure: go.Figure, row: int, laid: Sequence[Band]) -> None:
    rows = sum(band.lanes for band in laid)
    figure.update_yaxes(
        tickvals=[band.top + (band.lanes - 1) / 2 for band in laid],
        ticktext=[f"{text(band.node)} " for band in laid],
        range=[rows - 0.5, -0.5],
        showgrid=False,
        row=row,
        col=1,
    )
    for band in laid[1:]:
        figure.add_hline(y=band.top - 0.5, line_color=GRID, line_width=1, row=row, col=1)
