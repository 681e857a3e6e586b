"""Tables in what programs print: a head that names the columns, and the rows that follow it. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mlflow_hooks.printed.numbers import number, whole

_BAR: Final = re.compile(r":\s*\d{1,3}%\|.*$")
"""A progress bar that stands after the columns."""
_GAP: Final = re.compile(r"\s{2,}|\t")
_NAME: Final = re.compile(r"[^\W\d][^\s:=,;|]*(?: [^\s:=,;|]+){0,2}")
_MEASURE: Final = re.compile(r"[+-]?\d[\d.,:/]*[A-Za-z%]{0,5}")
"""A number, a time, a fraction or a size: what stands in a row."""
_MARKS: Final = "|;,"
"""Stand between the columns of other tables than those of spaces."""
_EMPTY: Final = frozenset({"-", "--", "", "n/a", "na", "none", "null"})
_LONGEST_NAME: Final = 60
_MOST_COLUMNS: Final = 50
_MOST_HEADS: Final = 20


@dataclass(frozen=True, slots=True)
class Row:
    """A row: values as printed, by the name of their column, and its step."""

    cells: tuple[tuple[str, str], ...]
    step: int | None


@dataclass(slots=True)
class _Head:
    """The names of the columns, and what stands in the first column of the rows that count, where that is a word."""

    names: tuple[str, ...]
    label: str | None = None


@dataclass(slots=True)
class Tables:
    """The tables that a program prints; a row belongs to the newest head of as many columns.

    Args:
        counters: names of columns that tell the step, in small letters.
    """

    counters: frozenset[str]
    _heads: dict[tuple[str, int], _Head] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        """Whether there was a head."""
        return bool(self._heads)

    def row(self, line: str) -> Row | None:
        """Return the row that ``line`` is; None where it is none. A head is taken note of."""
        line = _BAR.sub("", line).strip()
        for mark in (*_MARKS, "") if self._heads else ():
            if mark not in line:
                continue
            for cells in _splits(line, mark):
                head = self._heads.get((mark, len(cells)))
                if head and (found := self._row(head, cells)):
                    return found
        mark = next((mark for mark in _MARKS if mark in line), "")
        if names := self._names_in(line, mark):
            self._heads.pop((mark, len(names)), None)
            self._heads[mark, len(names)] = _Head(names)
            if len(self._heads) > _MOST_HEADS:
                del self._heads[next(iter(self._heads))]
        return None

    def _row(self, head: _Head, cells: Sequence[str]) -> Row | None:
        words = [cell for cell in cells if not _is_measure(cell)]
        label = cells[0] if words[:1] == cells[:1] and cells[0].casefold() not in _EMPTY else None
        if sum(word.casefold() not in _EMPTY for word in words) > (label is not None):
            return None
        counts = [at for at, name in enumerate(head.names) if name.casefold() in self.counters]
        step = whole(cells[counts[0]].partition("/")[0]) if counts else None
        if (counts and step is None) or len(cells) - len(words) < (2 if label else 1):
            return None
        head.label = head.label or label
        if label != head.label:  # other classes or data sets than the first are other metrics
            return Row((), None)
        named = [(name, cell) for name, cell in zip(head.names, cells, strict=True) if cell.casefold() not in _EMPTY]
        return Row(tuple(named[1:] if label else named), step)

    def _names_in(self, line: str, mark: str) -> tuple[str, ...]:
        for cells in _splits(line, mark):
            names = tuple(cell.strip("()") for cell in cells)
            # Words with single spaces are a sentence, unless they begin as no sentence does.
            single = cells == line.split() and not _GAP.search(line)
            if not 1 < len(names) <= _MOST_COLUMNS or (single and names[0].casefold() not in self.counters):
                continue
            if len(set(names)) == len(names) and all(map(_is_name, names)):
                return names
        return ()


def _splits(line: str, mark: str) -> list[list[str]]:
    """Return the ways in which a line may be cut into cells: at ``mark``, without one at spaces."""
    return [[cell.strip() for cell in line.strip("|").split(mark)]] if mark else [_GAP.split(line), line.split()]


def _is_name(text: str) -> bool:
    named = len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None
    return named and text[-1] not in ".!?" and number(text.rsplit(maxsplit=1)[-1]) is None


def _is_measure(cell: str) -> bool:
    return number(cell) is not None or _MEASURE.fullmatch(cell) is not None
