"""Small pictures as SVG: rectangles, lines and words on a pair of axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

INK, FAINT = "#33414e", "#d9dee3"
_FONT = "font-family='system-ui,sans-serif'"
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass
class Canvas:
    """A picture of ``width`` x ``height`` pixels."""

    width: float
    height: float
    _parts: list[str] = field(default_factory=list)

    def rect(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """Draw a filled rectangle."""
        if width > 0 and height > 0:
            self._parts.append(
                f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' fill='{colour}'/>"
            )

    def line(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1.0, dash: str = "") -> None:
        """Draw a line through ``points``."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f" stroke-dasharray='{dash}'" if dash else ""
        self._parts.append(
            f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='{width:g}'{dashed}/>"
        )

    def area(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        """Fill the polygon with corners ``points``."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f"<polygon points='{path}' fill='{colour}'/>")

    def text(self, x: float, y: float, words: str, *, size: int = 11, anchor: str = "start", colour: str = INK) -> None:
        """Write ``words``."""
        style = f"font-size='{size}' text-anchor='{anchor}' fill='{colour}'"
        self._parts.append(f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(words)}</text>")

    def legend(self, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
        """Write names beside their colours, on one line."""
        for name, colour in entries:
            self.rect(x, y - 9, 10, 10, colour)
            self.text(x + 14, y, name)
            x += 24 + 6.6 * len(name)

    def save(self, path: Path) -> None:
        """Write the picture to ``path``."""
        size = f"width='{self.width:g}' height='{self.height:g}' viewBox='0 0 {self.width:g} {self.height:g}'"
        body = "\n".join(self._parts)
        page = f"<rect width='100%' height='100%' fill='#ffffff'/>\n{body}"
        path.write_text(f"<svg xmlns='http://www.w3.org/2000/svg' {size} {_FONT}>\n{page}\n</svg>\n", encoding="utf-8")


@dataclass(frozen=True)
class Axes:
    """A part of a canvas with values from ``x_range`` and ``y_range`` on it; y grows upwards."""

    canvas: Canvas
    box: tuple[float, float, float, float]
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        """Return the pixel of a value on the horizontal axis."""
        left, _, width, _ = self.box
        return left + width * (value - self.x_range[0]) / (self.x_range[1] - self.x_range[0])

    def y(self, value: float) -> float:
        """Return the pixel of a value on the vertical axis."""
        _, top, _, height = self.box
        return top + height * (1 - (value - self.y_range[0]) / (self.y_range[1] - self.y_range[0]))

    def draw(self, title: str, x_title: str, y_title: str = "", *, x_ticks: bool = True, y_ticks: bool = True) -> None:
        """Draw frame, grid, ticks and titles."""
        left, top, width, height = self.box
        self.canvas.text(left, top - 8, title, size=13)
        self.canvas.text(left + width / 2, top + height + 32, x_title, anchor="middle")
        if y_title:
            self.canvas.text(left + width, top - 8, y_title, anchor="end")
        for value in ticks(*self.y_range) if y_ticks else ():
            self.canvas.line([(left, self.y(value)), (left + width, self.y(value))], FAINT)
            self.canvas.text(left - 5, self.y(value) + 4, f"{value:g}", anchor="end")
        for value in ticks(*self.x_range) if x_ticks else ():
            self.canvas.text(self.x(value), top + height + 15, f"{value:g}", anchor="middle")
        self.canvas.line([(left, top), (left, top + height), (left + width, top + height)], INK)


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Return round numbers from ``low`` to ``high``, about so many."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in _STEPS if factor * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]
