"""The journal of a simulated sweep: what a controller would find again after its death."""

from collections.abc import Callable

from controllers.core.model import Action
from controllers.core.ports import Outcome


class MemoryJournal:
    """Keeps the newest state, and whether anything was refused since somebody asked."""

    def __init__(self) -> None:
        self._state: Callable[[], str] | None = None
        self._refused = False

    def load(self) -> str | None:
        """Return the state saved last."""
        return None if self._state is None else self._state()

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep ``state``; it is worked out only if somebody loads it."""
        del urgent
        self._state = state

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Note a refusal."""
        del now, action, reason
        self._refused = self._refused or not outcome.accepted

    def take_refused(self) -> bool:
        """Return whether anything was refused since the last call."""
        refused, self._refused = self._refused, False
        return refused
