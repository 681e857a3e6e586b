"""How an attempt of a trial failed. Two that fail alike at once would be followed by a third."""

from dataclasses import dataclass
from typing import Final

AT_ONCE_S: Final = 60.0
"""An attempt that fails in fewer seconds, as the one before did and with the same last words, would fail again."""
MOST_BARREN: Final = 3
"""The attempt in a row that leaves unasked and has come no further counts as a failure from this one on."""
FIRST_PAUSE_S: Final = 1.0
MOST_PAUSE_S: Final = 60.0
_SIGNALS: Final = 128
"""Exit codes from here on tell of a signal: somebody else ended the program."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The end of an attempt that was no success.

    ``code`` is its exit code, 128 plus the number where a signal ended it. ``words`` is the last line that it printed,
    of a Python program its exception. It ran for ``lasted_s`` seconds.
    """

    code: int
    words: str
    lasted_s: float

    @property
    def at_once(self) -> str:
        """Exit code and last words where it failed at once and by itself; empty where it did not, or said nothing."""
        by_itself = 0 < self.code < _SIGNALS
        return f"{self.code}: {self.words}" if self.words and by_itself and self.lasted_s < AT_ONCE_S else ""


def pause_s(barren: int, first_s: float = FIRST_PAUSE_S) -> float:
    """Return the seconds before the next attempt after ``barren`` ones that left unasked and came no further.

    They grow from ``first_s``.
    """
    return min(MOST_PAUSE_S, first_s * 2 ** min(barren - 1, 10)) if barren else 0.0


def last_line(printed: str) -> str:
    """Return the last line of ``printed`` that says something, empty where none does."""
    return next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")
