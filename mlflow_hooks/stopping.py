"""SIGTERM as a wish that training fulfils at its next step boundary."""

import signal
from types import FrameType


class StopRequest:
    """Whether this process was asked to save and leave; a second SIGTERM changes nothing."""

    def __init__(self) -> None:
        self.asked = False
        self._before: object = None

    def listen(self) -> None:
        """Take SIGTERM over.

        Raises:
            ValueError: not called from the main thread.
        """
        self._before = signal.signal(signal.SIGTERM, self._note)

    def let_go(self) -> None:
        """Give SIGTERM back to whoever had it."""
        if callable(self._before) or isinstance(self._before, signal.Handlers):
            signal.signal(signal.SIGTERM, self._before)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
