"""What a landing runs of the long tests: its slice, what always runs, and what the change touches."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.rotation.landing import landings_until
from tests.rotation.slices import EVERY, SLICES, Row

MOST_TOUCHED_S: Final = 300.0
"""Seconds of tests that run only because the change touches them: a change of the model touches them all."""


@dataclass(frozen=True)
class Choice:
    """The rows that run, and why the others do not.

    Attributes:
        number: of the landing.
        slice: that runs whole.
        due: rows of the slice, and those that always run.
        touched: rows of other slices that run as well.
        crowded_out: rows that the change touches and that have to wait.
        waiting: all other rows.
    """

    number: int
    slice: str
    due: tuple[Row, ...]
    touched: tuple[Row, ...]
    crowded_out: tuple[Row, ...]
    waiting: tuple[Row, ...]

    @property
    def chosen(self) -> tuple[Row, ...]:
        """The rows that run."""
        return (*self.due, *self.touched)

    def lines(self) -> list[str]:
        """Say it to who reads the log."""
        always = sum(row.slice == EVERY for row in self.due)
        told = [
            f"landing {self.number} runs slice {self.slice} of {SLICES}: {_sum(self.due)}, {always} of them every time"
        ]
        if self.touched:
            told.append(f"the change touches, so these run too: {_sum(self.touched)}")
        if self.crowded_out:
            told.append(f"!! the change touches, but there is no time for: {_sum(self.crowded_out)}")
            told.extend(f"!!   {row.test}" for row in self.crowded_out[:_MOST_NAMED])
            if len(self.crowded_out) > _MOST_NAMED:
                told.append("!!   ...")
        for slice_, rows in self._by_slice():
            after = landings_until(slice_, self.number)
            when = "the next landing" if after == 1 else f"in {after} landings"
            told.append(f"!! not run: slice {slice_}, {_sum(rows)}: due {when} (make test-slice SLICE={slice_})")
        return told

    def _by_slice(self) -> list[tuple[str, list[Row]]]:
        found: defaultdict[str, list[Row]] = defaultdict(list)
        for row in (*self.crowded_out, *self.waiting):
            found[row.slice].append(row)
        return sorted(found.items(), key=lambda one: landings_until(one[0], self.number))


_MOST_NAMED: Final = 20


def choose(rows: Iterable[Row], number: int, slice_: str, near: Mapping[str, int]) -> Choice:
    """Choose what runs.

    Args:
        rows: all there are.
        number: of the landing, which says when others are due.
        slice_: the slice that runs.
        near: by file of tests, how near the change is to it; files that it does not touch are not there.
    """
    every = tuple(rows)
    due = tuple(row for row in every if row.is_in(slice_))
    others = [row for row in every if not row.is_in(slice_)]
    reached = sorted((row for row in others if row.file in near), key=lambda row: (near[row.file], row.seconds, row))
    fits = _fitting(reached)
    return Choice(
        number,
        slice_,
        due,
        tuple(reached[:fits]),
        tuple(reached[fits:]),
        tuple(row for row in others if row.file not in near),
    )


def _fitting(rows: Sequence[Row]) -> int:
    """Return how many of these, from the first on, there is time for."""
    left = MOST_TOUCHED_S
    for count, row in enumerate(rows):
        left -= row.seconds
        if left < 0:
            return count
    return len(rows)


def _sum(rows: Sequence[Row]) -> str:
    minutes = sum(row.seconds for row in rows) / 60
    return f"{len(rows)} test function{'s' if len(rows) != 1 else ''} ({minutes:.0f} min)"
