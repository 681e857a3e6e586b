"""The blocks of a page: files that a reader saves, commands that one types, and what the page says comes of them."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

_BLOCK: Final = re.compile(
    r"^(?P<before>(?:[^\n]+\n)*)\n```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_SAVED: Final = re.compile(r"[Ss]ave this as `([\w.]+)`")
_STANDS_FOR: Final = ((r"\\\.\\\.\\\.", ".*"), (r"\d+", r"\\d+(?:\\.\\d+)?"), (r"(?:\\ )+", r"\\s+"))
"""What stands for more than itself in an escaped line of a page: an omission, a number, a gap."""


@dataclass(frozen=True)
class PageBlock:
    """A block of a page: a file to save, or commands to type, and lines of what they print."""

    file: str
    text: str
    printed: tuple[str, ...] = ()


def blocks(page: Path) -> list[PageBlock]:
    """Return what a reader of a page saves and types, in order. A block ``text`` is what those commands print."""
    made: list[PageBlock] = []
    for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        kind, text, saved = found["kind"], found["text"], _SAVED.search(found["before"])
        if kind == "python" and saved:
            made.append(PageBlock(saved[1], text))
        elif kind == "console":
            made.append(PageBlock("", text))
        elif kind == "text" and made:
            made[-1] = replace(made[-1], printed=(*made[-1].printed, *text.splitlines()))
    return made


def unprinted(expected: tuple[str, ...], printed: str) -> list[str]:
    """Return the lines of a page that were not printed in this order; numbers, gaps and ``...`` stand for any."""
    lines = iter(printed.splitlines())
    return [line for line in expected if line.strip() and not any(_pattern(line).search(one) for one in lines)]


def _pattern(line: str) -> re.Pattern[str]:
    escaped = re.escape(line.strip())
    for stands, instead in _STANDS_FOR:
        escaped = re.sub(stands, instead, escaped)
    return re.compile(rf"^\s*{escaped}\s*$")
