"""What all charts of the report have in common."""

from html import escape
from typing import Any

import plotly.graph_objects as go

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK = "#52606d"
GRID = "rgba(128,140,155,.22)"
CONFIG: dict[str, Any] = {
    "responsive": True,
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
}


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
    )
    figure.update_xaxes(gridcolor=GRID, zeroline=False, automargin=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, automargin=True)
    return figure


def html(figure: go.Figure) -> str:
    """Return the chart as an HTML fragment; the page brings plotly's script itself."""
    made: str = figure.to_html(full_html=False, include_plotlyjs=False, config=CONFIG)
    return made


def text(value: object) -> str:
    """Return ``value`` for a chart's label, in which plotly would read markup."""
    return escape(str(value), quote=False)
