"""CSV tables read cell by cell, every complaint with its file, line, column and value."""

import csv
import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from controllers.core.errors import SpeconError
from controllers.core.model import Parameters
from controllers.core.parameters import MOST_PARAMETERS, MOST_TEXT, bound_parameters

PARAMETER: Final = "parameter."
"""Begins the name of a column that holds a hyperparameter."""
PARAMETERS: Final = f"{PARAMETER}NAME"
"""Among the columns that a table may have, stands for one for each hyperparameter."""
_SHOWN = 60


class TableError(SpeconError):
    """A table cannot be used; the message names file, line, column and the offending value."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of a table; ``line`` is counted from 1, the header included."""

    file: Path
    line: int
    cells: Mapping[str, str]

    def problem(self, column: str, expected: str) -> TableError:
        """Return the error that says what ``column`` should hold and what it holds."""
        cell = self.cells.get(column, "")
        shown = repr(cell if len(cell) <= _SHOWN else f"{cell[:_SHOWN]}...") if cell else "nothing"
        return TableError(f"{self.file}, line {self.line}, column {column}: expected {expected}, found {shown}")

    def text(self, column: str) -> str:
        """Return the cell, which must not be empty."""
        if not self.cells[column]:
            raise self.problem(column, "a name")
        return self.cells[column]

    def number(
        self, column: str, default: float | None = None, *, least: float = -math.inf, above: float = -math.inf
    ) -> float:
        """Return the cell as a finite number, at least ``least`` and greater than ``above``; ``default`` if empty."""
        written = self.cells.get(column, "")
        if not written and default is not None:
            return default
        try:
            value = float(written)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= least and value > above):
            raise self.problem(column, _range("a number", least, above))
        return value

    def logged(self, column: str) -> float:
        """Return the cell as a value that a trial logs: a number, NaN or infinite, as trials that diverge report."""
        try:
            return float(self.cells[column])
        except ValueError:
            raise self.problem(column, "a number, nan or inf") from None

    def whole(self, column: str, default: int | None = None, *, least: int) -> int:
        """Return the cell as a whole number, at least ``least``; ``default`` if empty."""
        value = self.number(column, default, least=least)
        if not float(value).is_integer():
            raise self.problem(column, _range("a whole number", least, -math.inf))
        return int(value)

    def parameters(self) -> Parameters:
        """Return the hyperparameters: numbers where cells read as such, texts elsewhere, none where they are empty."""
        written = {
            column.removeprefix(PARAMETER): cell
            for column, cell in self.cells.items()
            if column.startswith(PARAMETER) and cell
        }
        parameters = bound_parameters(written)
        kept = {name for name, _ in parameters}
        if left_out := [name for name in written if name not in kept]:
            expected = f"one of at most {MOST_PARAMETERS} parameters, in at most {MOST_TEXT} characters"
            raise self.problem(PARAMETER + left_out[0], expected)
        return parameters


def _range(kind: str, least: float, above: float) -> str:
    if above > -math.inf:
        return f"{kind} greater than {above:g}"
    return f"{kind}, at least {least:g}" if least > -math.inf else f"a finite {kind.removeprefix('a ')}"


def read_rows(path: Path, needed: Sequence[str], optional: Sequence[str] | None = None) -> Iterator[TableRow]:
    """Yield the rows of a CSV table (``.csv`` or ``.csv.gz``) whose first line names its columns.

    Args:
        path: The table.
        needed: Columns that it must have.
        optional: Columns that it may have beside them (``PARAMETERS`` stands for many); None for any.

    Raises:
        TableError: It is no such table; says where.
    """
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield from _rows(path, file, needed, optional)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        message = f"cannot read {path} as a table: {error}"
        raise TableError(message) from error


def _rows(path: Path, file: IO[str], needed: Sequence[str], optional: Sequence[str] | None) -> Iterator[TableRow]:
    reader = csv.reader(file, strict=True)
    try:
        columns = [name.strip() for name in next(reader, [])]
        _check_columns(path, columns, needed, optional)
        for cells in reader:
            if cells and len(cells) != len(columns):
                message = (
                    f"{path}, line {reader.line_num}: {len(cells)} cells, but the header names {len(columns)} columns"
                )
                raise TableError(message)
            if cells:
                row = {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}
                yield TableRow(path, reader.line_num, row)
    except csv.Error as error:
        message = f"{path}, line {reader.line_num}: no CSV: {error}"
        raise TableError(message) from error


def _check_columns(path: Path, columns: Sequence[str], needed: Sequence[str], optional: Sequence[str] | None) -> None:
    missing = [name for name in needed if name not in columns]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    others = [] if optional is None else [name for name in columns if name not in {*needed, *optional}]
    unknown = [name for name in others if not (PARAMETERS in (optional or ()) and name.startswith(PARAMETER))]
    for problem, names in (("has no column", missing), ("has twice the column", twice), ("has the unknown", unknown)):
        if names:
            known = "" if optional is None else f"; it may have {', '.join((*needed, *optional))}"
            message = f"{path}, line 1 {problem} {', '.join(map(repr, names))}{known}"
            raise TableError(message)
