"""The state store of a simulated sweep: what a controller would find again after its death."""

from collections.abc import Callable


class MemoryStore:
    """Keeps the newest state; it is worked out only if somebody loads it."""

    def __init__(self) -> None:
        self._state: Callable[[], str] | None = None

    def load(self) -> str | None:
        """Return the state saved last."""
        return None if self._state is None else self._state()

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep ``state``."""
        del urgent
        self._state = state
