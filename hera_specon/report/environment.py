"""What fills in the pages' templates, and the library that draws their charts."""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from hera_specon import formatting

PLOTLY = "plotly-basic.min.js.gz"
"""npm's plotly.js-basic-dist-min, which draws lines, points and bars: a quarter of what the whole library takes. The
page has it as it is packed here, a third of that again, and unpacks it."""


@cache
def environment(package: str = "hera_specon.report") -> Environment:
    """Return what fills in the templates of ``package``; it escapes whatever is put into them."""
    loader = PackageLoader(package, "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters.update(
        seconds=formatting.seconds,
        ratio=formatting.ratio,
        change=formatting.change,
        figure=formatting.figure,
        value=formatting.value,
        tone=tone,
    )
    return made


def packed_plotly() -> bytes:
    """Return the library that draws the charts, packed by gzip."""
    return files("hera_specon.report").joinpath(PLOTLY).read_bytes()


def tone(ratio: float) -> str:
    """Return the style of a ratio: a gain, a loss, or neither where it shows as no change."""
    shown = round(ratio, 3)
    return "gain" if shown < 1 else "loss" if shown > 1 else ""
