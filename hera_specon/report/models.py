"""What the models came to by their hyperparameters: parallel coordinates, and how important each of them was."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from controllers.core.optuna_library import quiet_optuna
from controllers.core.results import TrialResult
from hera_specon import formatting
from hera_specon.report.style import dress, html, text

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

LEAST_TRIALS: Final = 10
"""Trained to their end: fewer say nothing of what was important."""
_MOST_KINDS: Final = 12
"""Different values up to which a hyperparameter that is no number gets an axis."""
_SPREAD: Final = 100.0
"""A hyperparameter that is above 0 and varies by more than this factor was searched on a logarithmic scale."""
_SHADES: Final = 10
_BEST_TO_LAST: Final = [[0.0, "#2f7ed8"], [0.3, "#8fb3d9"], [1.0, "#c3cbd4"]]


def whole(ranked: Sequence[TrialResult]) -> list[TrialResult]:
    """Return the trials of a sweep that came to their end; values of the others cannot be compared with theirs."""
    return [trial for trial in ranked if not trial.stopped]


def varied_hyperparameters(trials: Sequence[TrialResult]) -> dict[str, list[Any]]:
    """Return the hyperparameters that all ``trials`` have and that differ between them, each with a value per trial."""
    names = [name for name in (trials[0].params if trials else {}) if all(name in trial.params for trial in trials)]
    values_of = {name: [trial.params[name] for trial in trials] for name in names}
    return {name: values for name, values in values_of.items() if len({str(value) for value in values}) > 1}


def importances(ranked: Sequence[TrialResult]) -> dict[str, float]:
    """Return how important each hyperparameter was for being among the best, the most important first; they sum to 1.

    By PED-ANOVA (Watanabe et al. 2023), as Optuna has it. Empty where fewer than ten trials came to their end.
    """
    trials = whole(ranked)
    values = varied_hyperparameters(trials)
    if len(trials) < LEAST_TRIALS or not values:
        return {}
    optuna = quiet_optuna()
    distributions = {name: _distribution(of) for name, of in values.items()}
    study = optuna.create_study(direction="minimize")
    for place, trial in enumerate(trials):
        params = {name: _value_for(of[place], distributions[name]) for name, of in values.items()}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=trial.loss))
    importance_of: dict[str, float] = optuna.importance.get_param_importances(study)
    return importance_of


def importance_chart(importances: dict[str, float]) -> str:
    """Return the importances as bars, as HTML; empty where there are none."""
    if not importances:
        return ""
    names = list(importances)[::-1]
    figure = go.Figure(
        go.Bar(
            x=[importances[name] for name in names],
            y=[text(name) for name in names],
            orientation="h",
            marker={"color": "#2f7ed8"},
            hovertemplate="%{y}: %{x:.0%}<extra></extra>",
        )
    )
    figure.update_xaxes(tickformat=".0%", rangemode="tozero")
    return html(dress(figure, 90 + 26 * len(names)))


def parallel_chart(ranked: Sequence[TrialResult], objective: str) -> str:
    """Return a line for each trial over its hyperparameters and its objective, the best in blue, as HTML.

    Empty where there are fewer than three trials, or nothing that differs between them.
    """
    trials = whole(ranked)
    axes = [axis for name, of in varied_hyperparameters(trials).items() if (axis := _axis(name, of))]
    if len(trials) < 3 or not axes:  # noqa: PLR2004 - two lines are no picture
        return ""
    axes.append(_number_axis(objective, [trial.final_metric or 0.0 for trial in trials]))
    # The best last, so that no other line hides them.
    figure = go.Figure([_lines(trials, axes, places, colour) for places, colour in _shades(len(trials))][::-1])
    dress(figure, 360)
    figure.update_layout(margin={"l": 30, "r": 60, "t": 34, "b": 14}, showlegend=False)
    figure.update_xaxes(
        tickvals=list(range(len(axes))),
        ticktext=[axis.label for axis in axes],
        side="top",
        range=[-0.1, len(axes) - 0.7],
    )
    figure.update_yaxes(visible=False, range=[-0.06, 1.06])
    for place, axis in enumerate(axes):
        for height, mark in axis.marks:
            figure.add_annotation(
                x=place, y=height, text=mark, xanchor="left", xshift=4, showarrow=False, font={"size": 11}
            )
    return html(figure)


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis of parallel coordinates: where each trial crosses it and what is marked on it, from 0 to 1."""

    label: str
    heights: Sequence[float]
    values: Sequence[str]
    marks: Sequence[tuple[float, str]]


def _lines(trials: Sequence[TrialResult], axes: Sequence[_Axis], places: Sequence[int], colour: str) -> go.Scatter:
    x: list[float | None] = []
    y: list[float | None] = []
    told: list[str] = []
    for place in places:
        x += [*range(len(axes)), None]
        y += [*(axis.heights[place] for axis in axes), None]
        told += [*(f"{text(trials[place].id)}<br>{axis.label} {axis.values[place]}" for axis in axes), ""]
    line = {"color": colour, "width": 1.5}
    return go.Scatter(x=x, y=y, text=told, mode="lines", line=line, hovertemplate="%{text}<extra></extra>")


def _shades(trials: int) -> Iterator[tuple[range, str]]:
    """Yield the places of trials that share a colour, from the best to the last, and that colour."""
    shades = min(_SHADES, trials)
    for shade in range(shades):
        places = range(shade * trials // shades, (shade + 1) * trials // shades)
        yield places, sample_colorscale(_BEST_TO_LAST, [shade / max(1, shades - 1)])[0]


def _axis(name: str, values: Sequence[Any]) -> _Axis | None:
    if _numeric(values):
        return _number_axis(name, [float(value) for value in values])
    kinds = sorted({str(value) for value in values})
    if len(kinds) > _MOST_KINDS:
        return None
    height = {kind: place / max(1, len(kinds) - 1) for place, kind in enumerate(kinds)}
    shown = {kind: text(kind) for kind in kinds}
    marks = [(height[kind], shown[kind]) for kind in kinds]
    return _Axis(text(name), [height[str(value)] for value in values], [shown[str(value)] for value in values], marks)


def _number_axis(name: str, numbers: Sequence[float]) -> _Axis:
    if _logarithmic(numbers):
        scale = math.log10
        powers = range(math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers))) + 1)
        ticks = {f"1e{power}": float(power) for power in powers}
        low, high = float(powers[0]), float(powers[-1])
    else:
        scale = float
        low, high = min(numbers), max(numbers)
        ticks = {formatting.figure(low + part * (high - low)): low + part * (high - low) for part in (0.0, 0.5, 1.0)}
    width = (high - low) or 1.0
    heights = [(scale(number) - low) / width for number in numbers]
    marks = [((at - low) / width, mark) for mark, at in ticks.items()]
    return _Axis(text(name), heights, [formatting.figure(number) for number in numbers], marks)


def _numeric(values: Sequence[Any]) -> bool:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return len(numbers) == len(values) and all(map(math.isfinite, numbers))


def _logarithmic(numbers: Sequence[float]) -> bool:
    return min(numbers) > 0 and max(numbers) / min(numbers) > _SPREAD


def _distribution(values: Sequence[Any]) -> "BaseDistribution":
    distributions = quiet_optuna().distributions
    distribution: BaseDistribution
    if not _numeric(values):
        distribution = distributions.CategoricalDistribution(sorted({str(value) for value in values}))
    elif all(isinstance(value, int) for value in values):
        distribution = distributions.IntDistribution(min(values), max(values), log=_logarithmic(values))
    else:
        distribution = distributions.FloatDistribution(min(values), max(values), log=_logarithmic(values))
    return distribution


def _value_for(value: Any, distribution: "BaseDistribution") -> Any:  # noqa: ANN401 - a hyperparameter's value
    return str(value) if hasattr(distribution, "choices") else value
