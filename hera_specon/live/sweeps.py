"""What a page can show: sweeps on a shelf, wherever they run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from controllers.core.errors import SpeconError
from hera_specon.live.paced import Made


class UnknownSweepError(SpeconError):
    """There is no such sweep."""


class ReadOnlyError(SpeconError):
    """Nothing can be asked of this sweep from a page."""


@dataclass(frozen=True, slots=True)
class SweepLine:
    """A sweep in the list: what it is called, whether it runs, and since when (in words)."""

    name: str
    phase: str
    begun: str
    told: str = ""


class LiveSweep(Protocol):
    """One sweep as it is shown, and asked; safe to be called from several threads."""

    def now(self) -> Made:
        """Return how it stands, as HTML."""
        ...

    def body(self) -> Made:
        """Return what its report shows so far, as HTML."""
        ...

    def ask(self, what: str, trials: Sequence[str] | None) -> list[str]:
        """Ask that trials ``pause``, ``stop`` or ``resume``, all of them for None; return what was asked, in lines.

        Raises:
            SpeconError: that cannot be asked, of these trials or at all.
        """
        ...

    def set_policy(self, spec: str) -> list[str]:
        """Ask for another policy, and return that in a line.

        Raises:
            SpeconError: it is none, or this sweep cannot have it.
        """
        ...


class Shelf(Protocol):
    """All sweeps that can be shown."""

    def lines(self) -> Sequence[SweepLine]:
        """Return a line for each, the newest first.

        Raises:
            SpeconError: they cannot be read.
        """
        ...

    def sweep(self, name: str) -> LiveSweep:
        """Return one.

        Raises:
            SpeconError: there is none of that name, or it cannot be read.
        """
        ...
