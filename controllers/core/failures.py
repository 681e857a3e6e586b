"""How an attempt of a trial failed. Two that fail alike at once would be followed by a third."""

from dataclasses import dataclass
from typing import Final

AT_ONCE_S: Final = 60.0
"""An attempt that fails in fewer seconds, as the one before did and with the same last words, would fail again."""
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


def last_line(printed: str) -> str:
    """Return the last line of ``printed`` that says something, empty where none does."""
    return next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")
