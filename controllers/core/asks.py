"""What owners ask of their trials, as text: in a file beside a run on this machine, in an annotation of a Workflow.

What is read may have been written by anybody, so it is bounded. Pure.
"""

from collections.abc import Mapping
from typing import Final

from controllers.core import trial_lists
from controllers.core.annotations import MOST_OF_AN_OBJECT
from controllers.core.model import Ask

MOST_WRITTEN: Final = MOST_OF_AN_OBJECT
"""Characters that are read at all."""
_OF_OWNERS: Final = frozenset({Ask.PAUSE, Ask.STOP})


def asks_in(written: str) -> dict[str, Ask]:
    """Return what is asked by the short id of each trial, such as ``vae.t007``; nothing where that makes no sense."""
    asked = trial_lists.read(written, MOST_WRITTEN)
    return {trial: Ask(ask) for trial, ask in asked.items() if ask in _OF_OWNERS}


def asks_written(asks: Mapping[str, Ask]) -> str:
    """Return the text that ``asks_in`` reads."""
    return trial_lists.write(asks)


class AsksInText:
    """What is asked, by the newest text of it that was taken in."""

    def __init__(self) -> None:
        self._written = ""
        self._asks: dict[str, Ask] = {}

    def take(self, written: str) -> None:
        """Take in the text as it is now; the same one again costs nothing."""
        if written != self._written:
            self._written, self._asks = written, asks_in(written)

    def asked(self) -> Mapping[str, Ask]:
        """Return what is asked by the short id of each trial."""
        return self._asks
