"""Which slice each long test is in, and how long it takes: ``slices.tsv``, which ``balance`` writes.

A test stays in its slice when others come and go. Were the table balanced afresh each time, a test could move from a
slice that is due to one that has just run, and so never run within ``SLICES`` landings.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

TABLE: Final = Path(__file__).with_name("slices.tsv")
SLICES: Final = 6
EVERY: Final = "every"
"""In place of a slice: the test runs with each landing, as one of the whole sweeps that stand for a world."""
UNMEASURED_S: Final = 30.0
"""What a test is taken for until a run has measured it."""
_HEAD: Final = "slice\tseconds\ttest"


@dataclass(frozen=True, order=True)
class Row:
    """A test function with all its parameters.

    Attributes:
        test: its name for pytest, without parameters: ``tests/cluster/test_kueue.py::test_a_sweep``.
        slice: 1 to ``SLICES``, or ``EVERY``.
        seconds: of wall clock that it takes of a run, all parameters together; a run of two at a time counts half.
    """

    test: str
    slice: str
    seconds: float

    @classmethod
    def read(cls, line: str) -> Self:
        """Read a line of the table."""
        where, seconds, test = line.split("\t")
        return cls(test, where, float(seconds))

    @property
    def line(self) -> str:
        """The line of the table."""
        return f"{self.slice}\t{self.seconds:.1f}\t{self.test}"

    @property
    def file(self) -> str:
        """The file that it is in, from the root of the repository."""
        return self.test.partition("::")[0]

    def is_in(self, slice_: str) -> bool:
        """Whether a run of this slice runs it."""
        return self.slice in (slice_, EVERY)


def read_table(table: Path = TABLE) -> tuple[Row, ...]:
    """Return all rows, in the order of the tests' names."""
    return tuple(Row.read(line) for line in table.read_text(encoding="utf-8").splitlines()[1:])


def write_table(rows: Iterable[Row], table: Path = TABLE) -> None:
    """Write these rows in the order of the tests' names, so that a change of one is a change of one line."""
    lines = [row.line for row in sorted(rows)]
    table.write_text("\n".join([_HEAD, *lines, ""]), encoding="utf-8")


def minutes_of_slices(rows: Iterable[Row]) -> dict[str, float]:
    """Return how many minutes each slice takes beside what runs in any case."""
    seconds: defaultdict[str, float] = defaultdict(float, {str(number): 0.0 for number in range(1, SLICES + 1)})
    for row in rows:
        seconds[row.slice] += row.seconds
    return {name: total / 60 for name, total in sorted(seconds.items())}


def balanced(known: Iterable[Row], tests: Iterable[str], measured: Mapping[str, float]) -> tuple[Row, ...]:
    """Return rows for exactly these tests: known ones as they are, new ones in the emptiest slices, longest first.

    Args:
        known: rows that there are; those of tests that are gone are dropped.
        tests: all long tests that there are, as ``Row.test`` has them.
        measured: seconds of some of them, newly measured.
    """
    there = set(tests)
    kept = [replace(row, seconds=measured.get(row.test, row.seconds)) for row in known if row.test in there]
    totals = minutes_of_slices(kept)
    totals.pop(EVERY, None)
    new = sorted(there - {row.test for row in kept}, key=lambda test: (-measured.get(test, UNMEASURED_S), test))
    for test in new:
        row = Row(test, min(totals, key=totals.__getitem__), measured.get(test, UNMEASURED_S))
        totals[row.slice] += row.seconds / 60
        kept.append(row)
    return tuple(sorted(kept))
