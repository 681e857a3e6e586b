"""Charts of shares, of learning, and of completion times."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from controllers.core.forecast import EndRange
from controllers.core.results import RunResult
from hera_specon import formatting
from hera_specon.records.comparison import completions
from hera_specon.records.history import SweepHistory
from hera_specon.records.run_folder import PolicyRun
from hera_specon.report.style import POLICIES, dress, html, text

NODE_HEIGHT = 130


def shares(history: SweepHistory, node: str) -> tuple[list[float], dict[str, list[float]]]:
    """Return the times at which a share on ``node`` changed, and each trial's cores from each on.

    A trial that is not on the node has 0 cores; every trial's list is as long as the times.
    """
    here = [s for s in history.all_stretches() if node in s.places and s.cpu is not None]
    times = sorted({0.0, history.end, *(s.start for s in here), *(s.end for s in here)})
    place_of = {time: place for place, time in enumerate(times)}
    held: dict[str, list[float]] = {}
    for stretch in sorted(here, key=lambda s: (s.start, s.trial)):
        cores = held.setdefault(stretch.trial, [0.0] * len(times))
        first, last = place_of[stretch.start], place_of[stretch.end]
        cores[first:last] = [(stretch.cpu or 0.0) * stretch.places.count(node)] * (last - first)
    return times, held


def usage(history: SweepHistory, node: str) -> list[tuple[float, float]]:
    """Return time and busy cores of ``node``: the sum over the trials on it of what each used last."""
    told = sorted(
        (at, trial, cores) for trial, uses in history.usage.items() for at, cores, where in uses if where == node
    )
    latest: dict[str, float] = {}
    sums: dict[float, float] = {}
    for at, trial, cores in told:
        latest = {
            name: used
            for name, used in latest.items()
            if any(node in s.places and s.start <= at <= s.end for s in history.stretches.get(name, ()))
        } | {trial: cores}
        sums[at] = sum(latest.values())
    return list(sums.items())


def share_chart(run: PolicyRun, colours: Mapping[str, str], end: float) -> str:
    """Return, node by node, the cores that each trial holds over time, and those in use, as HTML."""
    nodes = run.history.nodes()
    figure = make_subplots(
        rows=max(1, len(nodes)), cols=1, shared_xaxes=True, vertical_spacing=0.06,
        subplot_titles=[text(node) for node in nodes],
    )  # fmt: skip
    for row, node in enumerate(nodes, start=1):
        times, cores = shares(run.history, node)
        # As dicts: plotly checks each trace once, where it would copy an object of its own and check it again.
        traces: list[dict[str, Any]] = [
            {
                "type": "scatter", "x": times, "y": held, "name": text(trial), "stackgroup": f"node {row}",
                "mode": "lines", "line": {"shape": "hv", "width": 0.5, "color": colours[trial]},
                "hovertemplate": f"<b>{text(trial)}</b>: %{{y:.2f}} cores at %{{x:.0f}} s<extra></extra>",
            }
            for trial, held in cores.items()
        ]  # fmt: skip
        busy = usage(run.history, node)
        if busy:
            traces.append(
                {
                    "type": "scatter",
                    "x": [at for at, _ in busy],
                    "y": [cores for _, cores in busy],
                    "name": "in use",
                    "mode": "lines",
                    "line": {"color": "#8a94a0", "width": 1.6, "dash": "dot", "shape": "vh"},
                    "hovertemplate": "in use: %{y:.2f} cores at %{x:.0f} s<extra></extra>",
                }
            )
        figure.add_traces(traces, rows=row, cols=1)
    figure.update_annotations(x=0, xanchor="left", font_size=12)
    figure.update_yaxes(title_text="cores", rangemode="tozero", nticks=4)
    figure.update_xaxes(range=[0, end])
    figure.update_xaxes(title_text="seconds since the sweep began", row=max(1, len(nodes)), col=1)
    figure.update_layout(showlegend=False)
    return html(dress(figure, NODE_HEIGHT * max(1, len(nodes)) + 70))


def learning_chart(runs: Sequence[PolicyRun], colours: Mapping[str, str], objective: str) -> str:
    """Return the objective of each trial over time, a panel per policy, as HTML."""
    figure = make_subplots(
        rows=len(runs), cols=1, shared_xaxes=True, shared_yaxes="all", vertical_spacing=0.12 / len(runs),
        subplot_titles=[f"<b>{text(run.policy)}</b>" for run in runs],
    )  # fmt: skip
    for row, run in enumerate(runs, start=1):
        curves = [
            {
                "type": "scatter", "mode": "lines",
                "x": [report.at for report in reports], "y": [report.value for report in reports],
                "line": {"color": colours[trial], "width": 1.8}, "name": text(trial), "legendgroup": trial,
                "showlegend": row == 1,
                "hovertemplate": f"<b>{text(trial)}</b>: %{{y:.4g}} at %{{x:.0f}} s<extra></extra>",
            }
            for trial in sorted(run.history.reports, key=formatting.natural)
            if (reports := run.history.reports[trial])
        ]  # fmt: skip
        figure.add_traces(curves, rows=row, cols=1)
    figure.update_annotations(x=0, xanchor="left", font_size=13)
    figure.update_yaxes(title_text=text(objective))
    figure.update_xaxes(rangemode="tozero")
    figure.update_xaxes(title_text="seconds since the sweep began", row=len(runs), col=1)
    dress(figure, 250 * len(runs) + 110)
    axes = [f"yaxis{i if i > 1 else ''}.type" for i in range(1, len(runs) + 1)]
    scale_buttons = {
        "type": "buttons", "direction": "right", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom",
        "pad": {"b": 6}, "showactive": False, "font": {"size": 11},
        "buttons": [
            {"label": scale, "method": "relayout", "args": [dict.fromkeys(axes, scale)]} for scale in ("linear", "log")
        ],
    }  # fmt: skip
    below = {"y": -70 / (250 * len(runs)), "yanchor": "top"}
    figure.update_layout(updatemenus=[scale_buttons], margin_t=64, legend=below)
    return html(figure)


def forecast_chart(runs: Sequence[PolicyRun], end: float) -> str:
    """Return when each sweep was expected to end, over the time at which that was told, as HTML; empty without any."""
    shown = [
        (run, told)
        for run in runs
        if (told := [(forecast.at, forecast.end) for forecast in run.forecasts if forecast.end])
    ]
    if not shown:
        return ""
    figure = make_subplots(
        rows=len(shown), cols=1, shared_xaxes=True, vertical_spacing=0.12 / len(shown),
        subplot_titles=[f"<b>{text(run.policy)}</b>" for run, _ in shown],
    )  # fmt: skip
    for row, (run, told) in enumerate(shown, start=1):
        ended = max(trial.completed_s for trial in run.result.trials) if run.result else None
        times = [*(at for at, _ in told), run.history.end]
        ranges = [*(forecast for _, forecast in told), told[-1][1]]  # what was told last held to the end
        common = {"x": times, "mode": "lines", "showlegend": row == 1}
        step = {"shape": "hv", "color": POLICIES[1], "width": 1.8}
        traces = [
            go.Scatter(**common | {"showlegend": False}, y=[r.high for r in ranges], hoverinfo="skip",
                       line={"shape": "hv", "width": 0}),
            go.Scatter(**common, y=[r.low for r in ranges], name="range", fill="tonexty", hoverinfo="skip",
                       fillcolor="rgba(47,126,216,.18)", line={"shape": "hv", "width": 0}),
            go.Scatter(**common, y=[r.likely for r in ranges], name="expected end", line=step,
                       hovertemplate="expected at %{x:.0f} s: %{y:.0f} s<extra></extra>"),
        ]  # fmt: skip
        if ended is not None:
            line = {"color": "#e5731f", "width": 1.6, "dash": "dot"}
            traces.append(go.Scatter(**common | {"x": [0.0, end]}, y=[ended, ended], name="came true", line=line))
        for trace in traces:
            figure.add_trace(trace, row=row, col=1)
    figure.update_annotations(x=0, xanchor="left", font_size=13)
    figure.update_yaxes(title_text="end in seconds")
    for row, (run, told) in enumerate(shown, start=1):
        figure.update_yaxes(range=[0, _forecast_top(run, told)], row=row, col=1)
    figure.update_xaxes(range=[0, end])
    figure.update_xaxes(title_text="seconds since the sweep began", row=len(shown), col=1)
    return html(dress(figure, 200 * len(shown) + 90))


def _forecast_top(run: PolicyRun, told: Sequence[tuple[float, EndRange]]) -> float:
    """Return the top of a forecast's axis, in seconds: above what was foreseen for nine tenths of the run.

    The first forecasts know little, and one of them would leave the rest as a line at the bottom.
    """
    until = [*(at for at, _ in told[1:]), run.history.end]
    lasting = [(forecast.high, max(0.0, end - at)) for (at, forecast), end in zip(told, until, strict=True)]
    held = sorted((high, time) for high, time in lasting if math.isfinite(high))
    left, top = 0.9 * sum(time for _, time in held), 0.0
    for high, time in held:
        if left <= 0:
            break
        left, top = left - time, high
    ended = max((trial.completed_s for trial in run.result.trials), default=0.0) if run.result else 0.0
    return 1.1 * max(top, run.history.end, ended)


def completion_chart(results: Sequence[RunResult]) -> str:
    """Return each trial's completion time under every policy, the greatest gain on top, as HTML."""
    times = [completions(result) for result in results]
    trials = sorted(times[0], key=lambda trial: (times[-1].get(trial, 0) / max(times[0][trial], 1e-9), trial))
    figure = go.Figure()
    if len(results) > 1:
        figure.add_trace(_spans(trials, times))
    for i, (result, of_run) in enumerate(zip(results, times, strict=True)):
        figure.add_trace(
            go.Scatter(
                x=[of_run[trial] for trial in trials],
                y=[text(trial) for trial in trials],
                mode="markers",
                name=text(result.policy),
                marker={"size": 11, "color": POLICIES[i % len(POLICIES)]},
                hoverinfo="text",
                hovertext=[
                    f"<b>{text(t)}</b> under {text(result.policy)}: {formatting.seconds(of_run[t])}" for t in trials
                ],
            )
        )
    figure.update_yaxes(autorange="reversed", type="category", showgrid=False)
    figure.update_xaxes(title_text="completion time in seconds", rangemode="tozero")
    dress(figure, 24 * len(trials) + 110)
    return html(figure.update_layout(legend={"y": 1.0, "yanchor": "bottom"}))


def _spans(trials: Sequence[str], times: Sequence[Mapping[str, float]]) -> go.Scatter:
    ends = [(min(t[trial] for t in times), max(t[trial] for t in times)) for trial in trials]
    return go.Scatter(
        x=[x for low, high in ends for x in (low, high, None)],
        y=[text(trial) for trial in trials for _ in range(3)],
        mode="lines", line={"color": "rgba(128,140,155,.45)", "width": 3}, hoverinfo="skip", showlegend=False,
    )  # fmt: skip
