"""Metrics in what a training script prints: ``loss: 0.31``, ``loss=0.31``, ``val_loss 0.31``. Pure."""

import re
from collections.abc import Iterator
from typing import Final

_NUMBER: Final = r"(?P<value>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|NaN|inf|Infinity))"
_ENDS: Final = r"(?=[\s,;|)\]}%\"']|\.?$|\.\s)"
"""What may follow a value. Times, fractions and versions go on: ``0.3s``, ``3/10``, ``1.2.3``."""
_WORD: Final = r"[A-Za-z_][\w./-]*"
_SIGNED: Final = re.compile(
    rf"(?<![\w./-])[\"']?(?P<name>{_WORD}(?: {_WORD}){{0,2}})[\"']?[ \t]*[:=][ \t]*{_NUMBER}{_ENDS}"
)
_BARE: Final = re.compile(
    rf"(?:^|[:,;|\]]|\s-|\s\s)[ \t]*(?P<name>{_WORD}(?: {_WORD}){{0,2}})[ \t]+{_NUMBER}(?=[ \t]*(?:$|[,;|])|\s-\s|\s\s)"
)
"""A name and its value alone on the line, or alone between commas and the like."""
_LEVELS: Final = re.compile(r"^(?:(?:TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL) )+")
_STEERING: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours, and whatever else steers a terminal."""
_GAP: Final = re.compile(r"\s{3,}")
_COUNTERS: Final = frozenset(
    {
        *("epoch", "epochs", "step", "steps", "iter", "iters", "iteration", "batch", "seed", "time", "elapsed", "eta"),
        *("took", "total", "rank", "port", "pid", "line", "version", "device", "lr"),
    }
)
_LONGEST_LINE: Final = 4096


def printed_metrics(line: str) -> Iterator[tuple[str, float]]:
    """Yield the names and values of the metrics that ``line`` tells of; no counters such as ``epoch``.

    A name has up to three words, as in ``Validation loss: 0.31``, and no level of a log before it.
    """
    plain = _GAP.sub("  ", _STEERING.sub("", line[:_LONGEST_LINE]))
    signed = list(_SIGNED.finditer(plain))
    taken = [match.span() for match in signed]
    bare = [match for match in _BARE.finditer(plain) if not any(_meet(match.span(), span) for span in taken)]
    for match in sorted([*signed, *bare], key=lambda match: match.start()):
        name = _LEVELS.sub("", match["name"])
        if name.casefold() not in _COUNTERS:
            yield name, float(match["value"])


def values_of(metric: str, line: str) -> Iterator[float]:
    """Yield the values of ``metric`` that ``line`` tells of, whatever the case of its letters there."""
    wanted = metric.casefold()
    return (value for name, value in printed_metrics(line) if name.casefold() == wanted)


def lines_of(text: str) -> list[str]:
    """Return the lines of ``text``; what a progress bar has overwritten is a line of its own."""
    return re.split(r"[\r\n]+", text)


def _meet(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span[0] < other[1] and other[0] < span[1]
