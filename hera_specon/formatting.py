"""Numbers and texts as people read them. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST_LINE = 4096
"""Characters of a line that is told: as long as a path may be."""
DASH = "\N{EN DASH}"
MINUTE = 60
HOUR = 3600
COUNTED_TOGETHER = 10
"""From here on a number of seconds is shown without its fraction."""
_SPAN_IN_SECONDS = 90
"""A span of at most so many seconds is shown in seconds."""
_SPAN_IN_MINUTES = 5400
"""A longer span of at most so many seconds is shown in minutes."""


def seconds(value: float | None) -> str:
    """Return a duration such as ``4.2 s``, ``45 s``, ``3 m 05 s`` or ``2 h 07 m``; a dash for None."""
    if value is None or not math.isfinite(value):
        return DASH
    if abs(value) < COUNTED_TOGETHER:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} m {whole % MINUTE:02d} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE:02d} m"


def span(low: float, likely: float, high: float) -> str:
    """Return seconds that are not known exactly, such as ``40 s (35-52)``, ``5 min (4-7)`` or ``2.5 h (2.2-3.1)``."""
    unit, each, digits = "h", HOUR, 1
    if likely < _SPAN_IN_SECONDS:
        unit, each, digits = "s", 1, 0
    elif likely < _SPAN_IN_MINUTES:
        unit, each, digits = "min", MINUTE, 0
    step = 10.0**digits
    least, most = math.floor(low / each * step) / step, math.ceil(high / each * step) / step
    return f"{likely / each:.{digits}f} {unit} ({least:.{digits}f}{DASH}{most:.{digits}f})"


def ratio(value: float) -> str:
    """Return a ratio with its times sign, to two digits."""
    return f"{value:.2f}\N{MULTIPLICATION SIGN}"


def change(value: float) -> str:
    """Return a ratio as a change in percent, such as ``-14.0 %``."""
    return f"{(value - 1) * 100:+.1f} %"


def cores(value: float) -> str:
    """Return cores such as ``0.45`` or ``2``."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def amount(money: float | None) -> str:
    """Return an amount of money with two decimals, or two significant digits where it is small; a dash for None."""
    if money is None:
        return DASH
    return f"{money:,.2f}" if money >= 1 or money == 0 else f"{money:.2g}"


def figure(value: float | None) -> str:
    """Return an objective with four significant digits; a dash for None."""
    return DASH if value is None else f"{value:.4g}"


def value(given: object) -> str:
    """Return a hyperparameter's value, a float with four significant digits."""
    return f"{given:.4g}" if isinstance(given, float) else str(given)


def params(values: Mapping[str, Any]) -> str:
    """Return hyperparameters on one line, such as ``lr=0.01 units=64``."""
    return " ".join(f"{name}={value(of)}" for name, of in values.items())


def printable(text: str) -> str:
    """Return ``text`` without what could steer a terminal; for whatever a cluster or MLflow says."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str) -> str:
    """Return ``text`` as one line that fits into a terminal's memory, without what could steer it."""
    return printable(text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "\N{HORIZONTAL ELLIPSIS}")


def printable_lines(text: str) -> str:
    """Return ``text`` without what could steer a terminal but for its line ends."""
    return "\n".join(map(one_line, text.splitlines()))


def short_id(trial: str) -> str:
    """Return a trial's id without the run that it belongs to: ``vae.t007`` of ``demo-1-00.vae.t007``."""
    return trial.split(".", 1)[1] if trial.count(".") > 1 else trial


def places(nodes: Sequence[str]) -> str:
    """Return the nodes of a trial's workers as people read them: ``node-1 x2, node-3``."""
    counts = Counter(nodes)
    return ", ".join(node if count == 1 else f"{node} x{count}" for node, count in counts.items())


def natural(name: str) -> tuple[int, str]:
    """Return a key that sorts trial-2 before trial-10."""
    return len(name), name
