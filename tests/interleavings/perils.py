"""What may go wrong at a call of a server: it fails, its answer is lost, the controller is killed around it."""

from collections.abc import Callable
from typing import Final

from tests.interleavings.steps import Steps

FAILS: Final = 0.015
"""How often a call fails, or its answer is lost."""
CRASHES: Final = 0.01
"""How often a controller is killed at a write point, where no certain one was asked for."""
MOST_CRASHES: Final = 6
ON_PURPOSE: Final = "lost on purpose"
"""What the error of such a call says."""


class Perils:
    """Decides what goes wrong, and counts the write points: two for each call that changes something.

    Args:
        steps: of the run.
        crash_at: number of the write point at which the controller is killed; 0 for none, None for some by chance.

    Attributes:
        points: write points passed so far.
        crashing: whether the controller is to be killed now.
        calm: whether nothing fails by chance any more.
    """

    def __init__(self, steps: Steps, crash_at: int | None) -> None:
        self.steps = steps
        self.points = 0
        self.crashes = 0
        self.crashing = False
        self.calm = False
        self._crash_at = crash_at

    def read(self, what: str, failure: Callable[[str], Exception]) -> None:
        """Pass a point at which something is read.

        Raises:
            Exception: the ``failure`` of a call that came to nothing.
        """
        self.steps.pause(what)
        self._fail(what, failure)

    def write(self, what: str, failure: Callable[[str], Exception], *, sure: bool = False) -> None:
        """Pass a write point: right before the server takes the call, or right after, before its answer is here.

        Args:
            what: is about to be done, or was.
            failure: makes the error.
            sure: whether the call cannot fail by chance.

        Raises:
            Exception: the ``failure`` of a call. Its caller does not know what became of the call.
        """
        self.points += 1
        self.crashing = self.crashing or self._crashes_here()
        self.steps.pause(f"{what} (write point {self.points})")
        if not sure:
            self._fail(what, failure)

    def crashed(self) -> None:
        """Note that the controller was killed."""
        self.crashing = False
        self.crashes += 1

    def _crashes_here(self) -> bool:
        if self._crash_at is not None:
            return self.points == self._crash_at
        return self.crashes < MOST_CRASHES and self.steps.chance.random() < CRASHES

    def _fail(self, what: str, failure: Callable[[str], Exception]) -> None:
        if not self.calm and self.steps.chance.random() < FAILS:
            message = f"{what}: {ON_PURPOSE}"
            raise failure(message)
