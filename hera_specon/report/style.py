"""What all charts of the report have in common: colours, fonts, and their place on the page."""

from collections.abc import Iterable
from html import escape

import plotly.graph_objects as go

from hera_specon import formatting

CATEGORIES = {"progressing": "#2f7ed8", "watching": "#e5a11f", "converged": "#9a6fb0"}
"""Bars of the Gantt chart by category."""
UNASSESSED = "#8796a5"
"""A trial that runs without a policy having judged it."""
LEAVING = {"moving": "#2aa198", "suspending": "#7a6ad8", "stopping": "#7a6ad8"}
"""A trial that was told to save and end its attempt."""

POLICIES = ("#8796a5", "#2f7ed8", "#e5731f", "#2aa198", "#b0538f", "#7a6ad8")
"""The baseline is grey, what is compared with it stands out."""

TRIALS = (
    "#2f7ed8", "#e5731f", "#2aa198", "#b0538f", "#c9a227", "#7a6ad8", "#5b9e4d", "#d6616b", "#4fb3d9", "#8c6d46",
    "#5d6fb3", "#d98bb9",
)  # fmt: skip
"""A trial keeps its colour over all charts; after twelve they begin again."""


def category_colour(phase: str, category: str | None) -> str:
    """Return the colour of a bar."""
    return LEAVING.get(phase) or CATEGORIES.get(category or "", UNASSESSED)


def category_label(phase: str, category: str | None) -> str:
    """Return what a bar's colour means."""
    return phase if phase in LEAVING else category or "not judged"


def trial_colours(trials: Iterable[str]) -> dict[str, str]:
    """Return a colour for each trial, the same for the same set of trials."""
    return {trial: TRIALS[i % len(TRIALS)] for i, trial in enumerate(sorted(set(trials), key=formatting.natural))}


FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK = "#52606d"
GRID = "rgba(128,140,155,.22)"


def dress(figure: go.Figure, height: int) -> go.Figure:
    """Give ``figure`` the report's looks; its ink is set again by the page's style in the dark."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": FONT, "size": 12, "color": INK},
        hoverlabel={"bgcolor": "#1f2933", "font": {"color": "#f5f7fa", "family": FONT}, "align": "left"},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "title": None},
        hovermode="closest",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#9aa5b1", "activecolor": "#2f7ed8"},
    )
    figure.update_xaxes(gridcolor=GRID, zeroline=False, automargin=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, automargin=True)
    return figure


def html(figure: go.Figure) -> str:
    """Return the chart's place on the page with its data inside; the page's script draws it there."""
    figure.update_layout(template=None)
    data = str(figure.to_json()).replace("<", "\\u003c")
    height = int(figure.layout.height)
    return f'<div class="plot" style="height:{height}px"><script type="application/json">{data}</script></div>'


def text(value: object) -> str:
    """Return ``value`` for a chart's label, in which plotly would read markup."""
    return escape(str(value), quote=False)
