"""What the models came to by their hyperparameters: parallel coordinates, and how important each of them was."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import plotly.graph_objects as go

from controllers.core.optuna_library import quiet_optuna
from controllers.core.results import TrialResult
from hera_specon.report.style import dress, html, text

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

LEAST_TRIALS: Final = 10
"""Trained to their end: fewer say nothing of what was important."""
_MOST_KINDS: Final = 12
"""Different values up to which a hyperparameter that is no number gets an axis."""
_SPREAD: Final = 100.0
"""A hyperparameter that is above 0 and varies by more than this factor was searched on a logarithmic scale."""


def whole(ranked: Sequence[TrialResult]) -> list[TrialResult]:
    """Return the trials of a sweep that came to their end; values of the others cannot be compared with theirs."""
    return [trial for trial in ranked if not trial.stopped]


def varied(trials: Sequence[TrialResult]) -> dict[str, list[Any]]:
    """Return the hyperparameters that all ``trials`` have and that differ between them, each with a value per trial."""
    names = [name for name in (trials[0].params if trials else {}) if all(name in trial.params for trial in trials)]
    found = {name: [trial.params[name] for trial in trials] for name in names}
    return {name: values for name, values in found.items() if len({str(value) for value in values}) > 1}


def importances(ranked: Sequence[TrialResult]) -> dict[str, float]:
    """Return how important each hyperparameter was for being among the best, the most important first; they sum to 1.

    By PED-ANOVA (Watanabe et al. 2023), as Optuna has it. Empty where fewer than ten trials came to their end.
    """
    trials = whole(ranked)
    values = varied(trials)
    if len(trials) < LEAST_TRIALS or not values:
        return {}
    optuna = quiet_optuna()
    distributions = {name: _distribution(of) for name, of in values.items()}
    study = optuna.create_study(direction="minimize")
    for place, trial in enumerate(trials):
        params = {name: _typed(of[place], distributions[name]) for name, of in values.items()}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=trial.loss))
    found: dict[str, float] = optuna.importance.get_param_importances(study)
    return found


def importance_chart(found: dict[str, float]) -> str:
    """Return the importances as bars, as HTML; empty where there are none."""
    if not found:
        return ""
    names = list(found)[::-1]
    figure = go.Figure(
        go.Bar(
            x=[found[name] for name in names],
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
    axes = [axis for name, of in varied(trials).items() if (axis := _axis(name, of))]
    if len(trials) < 3 or not axes:  # noqa: PLR2004 - two lines are no picture
        return ""
    best = [trial.final_metric or 0.0 for trial in trials]
    places = list(range(len(trials)))
    figure = go.Figure(
        go.Parcoords(
            line={"color": places, "colorscale": [[0.0, "#2f7ed8"], [0.3, "#8fb3d9"], [1.0, "#d9dee4"]]},
            dimensions=[*axes, {"label": text(objective), "values": best}],
        )
    )
    dress(figure, 360)
    figure.update_layout(margin={"l": 60, "r": 60, "t": 60, "b": 24})
    return html(figure)


def _axis(name: str, values: Sequence[Any]) -> dict[str, Any] | None:
    if _numeric(values):
        numbers = [float(value) for value in values]
        if not _logarithmic(numbers):
            return {"label": text(name), "values": numbers}
        low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
        ticks = list(range(low, high + 1))
        logs = [math.log10(value) for value in numbers]
        return {"label": text(name), "values": logs, "tickvals": ticks, "ticktext": [f"1e{tick}" for tick in ticks]}
    kinds = sorted({str(value) for value in values})
    if len(kinds) > _MOST_KINDS:
        return None
    ticks = list(range(len(kinds)))
    shown = [text(kind) for kind in kinds]
    return {
        "label": text(name),
        "values": [kinds.index(str(value)) for value in values],
        "tickvals": ticks,
        "ticktext": shown,
    }


def _numeric(values: Sequence[Any]) -> bool:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return len(numbers) == len(values) and all(map(math.isfinite, numbers))


def _logarithmic(numbers: Sequence[float]) -> bool:
    return min(numbers) > 0 and max(numbers) / min(numbers) > _SPREAD


def _distribution(values: Sequence[Any]) -> "BaseDistribution":
    distributions = quiet_optuna().distributions
    found: BaseDistribution
    if not _numeric(values):
        found = distributions.CategoricalDistribution(sorted({str(value) for value in values}))
    elif all(isinstance(value, int) for value in values):
        found = distributions.IntDistribution(min(values), max(values), log=_logarithmic(values))
    else:
        found = distributions.FloatDistribution(min(values), max(values), log=_logarithmic(values))
    return found


def _typed(value: Any, distribution: "BaseDistribution") -> Any:  # noqa: ANN401 - a hyperparameter's value
    return str(value) if hasattr(distribution, "choices") else value
