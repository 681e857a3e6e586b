"""The sweep's own clock: seconds since the sweep began, without the time in which no controller drove it.

The machine's own clock may be set while a sweep runs. No duration is taken from it: it is read once, at the start.
"""

import time
from typing import Final

MOST_AHEAD_S: Final = 7 * 86_400.0
"""A clock is not put forward by more than this: anybody may have written what says so."""


class SweepClock:
    """Real time, from ``elapsed`` seconds on, none below 0. A resumed sweep passes what had elapsed before."""

    def __init__(self, elapsed: float = 0.0) -> None:
        elapsed = max(0.0, elapsed)
        self._origin = time.monotonic() - elapsed
        self._epoch_origin = time.time() - elapsed

    def now(self) -> float:
        """Return the seconds since the sweep began."""
        return time.monotonic() - self._origin

    def not_before(self, elapsed: float) -> None:
        """Go on from ``elapsed`` seconds unless it is later: what is known of a sweep was not seen in its future."""
        missing = min(elapsed - self.now(), MOST_AHEAD_S)
        if missing > 0:
            self._origin -= missing
            self._epoch_origin -= missing

    def epoch(self) -> float:
        """Return the Unix time in seconds as it is by the machine's clock of the start, whatever that was set to."""
        return self.now() + self._epoch_origin

    def from_epoch(self, epoch_s: float) -> float:
        """Return the sweep time of a Unix time in seconds, as MLflow stamps metrics; none is before the sweep."""
        return max(0.0, epoch_s - self._epoch_origin)

    def to_epoch(self, sweep_s: float) -> float:
        """Return the Unix time in seconds of a sweep time for people, if nothing interrupts the sweep until then."""
        return time.time() + sweep_s - self.now()
