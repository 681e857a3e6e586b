"""The best model so far, over time: what people look at who search for one."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from controllers.core.model import Direction
from hera_specon.records.history import SweepHistory
from hera_specon.records.run_folder import PolicyRun
from hera_specon.report.style import POLICIES, dress, html, text


def best_so_far(history: SweepHistory, direction: Direction) -> list[tuple[float, float, str]]:
    """Return when a report was the best of its sweep so far: seconds, value and trial; NaN and infinities are none."""
    told = sorted(
        (report.at, report.value, trial)
        for trial, reports in history.reports.items()
        for report in reports
        if math.isfinite(report.value)
    )
    sign = 1 if direction is Direction.MINIMIZE else -1
    bests: list[tuple[float, float, str]] = []
    for at, value, trial in told:
        if not bests or sign * value < sign * bests[-1][1]:
            bests.append((at, value, trial))
    return bests


def best_chart(runs: Sequence[PolicyRun], direction: Direction, objective: str) -> str:
    """Return the best value so far over time, a line for each policy, as HTML; empty where nothing was reported."""
    figure = go.Figure()
    for number, run in enumerate(runs):
        best = best_so_far(run.history, direction)
        if not best:
            continue
        ends = [*best, (run.history.end, best[-1][1], best[-1][2])]
        figure.add_trace(
            go.Scatter(
                x=[at for at, _, _ in ends],
                y=[value for _, value, _ in ends],
                mode="lines",
                name=text(run.policy),
                line={"shape": "hv", "width": 2, "color": POLICIES[number % len(POLICIES)]},
                hoverinfo="text",
                hovertext=[f"<b>{text(trial)}</b>: {value:.4g} at {at:.0f} s" for at, value, trial in ends],
            )
        )
    if not figure.data:
        return ""
    figure.update_yaxes(title_text=text(objective))
    figure.update_xaxes(title_text="seconds since the sweep began", rangemode="tozero")
    return html(dress(figure, 300))
