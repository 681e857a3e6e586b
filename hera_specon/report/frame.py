"""What all charts of the report have in common."""

from html import escape

import plotly.graph_objects as go

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
