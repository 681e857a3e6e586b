"""The Pareto front of a sweep of several objectives: a chart of the first two, and a table of those on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go

from controllers.core.results import TrialResult
from hera_specon import formatting
from hera_specon.records.run_folder import PolicyRun
from hera_specon.report.style import UNASSESSED, dress, html, text

MOST_ROWS: Final = 50
"""Trials that the table shows."""
MOST_COLUMNS: Final = 12
"""Hyperparameters that it shows of each."""
_ON_IT: Final = "#2f7ed8"
_BREAKS: Final = "#d6616b"


@dataclass(frozen=True, slots=True)
class FrontRow:
    """A trial on the front: a value for each metric, in the order of the table's columns."""

    trial: TrialResult
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Front:
    """The front of a sweep under a policy, with as many of the ``of`` trials on it as its table shows.

    ``metrics`` are the columns of values: the objectives, and what constraints are about. ``chart`` is HTML.
    """

    policy: str
    sweep: str
    rows: tuple[FrontRow, ...]
    of: int
    metrics: tuple[str, ...]
    names: tuple[str, ...]
    constraints: str
    chart: str


def fronts_of(runs: Sequence[PolicyRun]) -> Iterator[Front]:
    """Yield the front of each sweep of several objectives under each policy that has finished."""
    for run in runs:
        for sweep, front in run.result.fronts().items() if run.result else ():
            trials = [trial for trial in run.result.trials if trial.sweep == sweep] if run.result else []
            if front:
                yield _front(run.policy, sweep, front, trials)


def _front(policy: str, sweep: str, front: Sequence[TrialResult], trials: Sequence[TrialResult]) -> Front:
    first = front[0]
    metrics = first.aims.metrics
    rows = tuple(
        FrontRow(trial, (trial.final_metric, *(trial.values.get(metric) for metric in metrics)))
        for trial in front[:MOST_ROWS]
    )
    names = tuple(dict.fromkeys(name for trial in front for name in trial.params))[:MOST_COLUMNS]
    chart = front_chart(front, trials)
    return Front(policy, sweep, rows, len(front), (first.objective, *metrics), names, first.constraints, chart)


def front_chart(front: Sequence[TrialResult], trials: Sequence[TrialResult]) -> str:
    """Return the trials by their first two objectives as HTML: those on the front, the others, those that do not count.

    Args:
        front: the trials on it.
        trials: all of the sweep.
    """
    second = front[0].aims.further[0]
    ids = {trial.id for trial in front}
    known = [trial for trial in trials if trial.loss is not None and second.metric in trial.values]
    beside = [trial for trial in known if trial.id not in ids]
    figure = go.Figure()
    groups = (
        ("breaks a constraint", _BREAKS, "x", [trial for trial in beside if not trial.feasible]),
        ("beaten", UNASSESSED, "circle", [trial for trial in beside if trial.feasible]),
        ("on the front", _ON_IT, "circle", list(front)),
    )
    for name, colour, symbol, group in groups:
        if group:
            figure.add_trace(
                go.Scatter(
                    x=[trial.final_metric for trial in group],
                    y=[trial.values[second.metric] for trial in group],
                    mode="markers",
                    name=name,
                    marker={"color": colour, "symbol": symbol, "size": 10 if group == list(front) else 7},
                    hoverinfo="text",
                    hovertext=[_told(trial, second.metric) for trial in group],
                )
            )
    figure.update_xaxes(title_text=f"{text(front[0].objective)} ({front[0].direction}d)")
    figure.update_yaxes(title_text=f"{text(second.metric)} ({second.direction.value}d)")
    return html(dress(figure, 380))


def _told(trial: TrialResult, metric: str) -> str:
    values = f"{formatting.figure(trial.final_metric)}, {formatting.figure(trial.values[metric])}"
    return f"<b>{text(trial.id)}</b>: {values}<br>{text(formatting.params(trial.params))}"
