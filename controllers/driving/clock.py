"""The sweep's own clock: seconds since the sweep began, without the time in which no controller drove it."""

import time


class SweepClock:
    """Real time, from ``elapsed`` seconds on. A resumed sweep passes what had elapsed before."""

    def __init__(self, elapsed: float = 0.0) -> None:
        self._origin = time.monotonic() - elapsed
        self._epoch_origin = time.time() - elapsed

    def now(self) -> float:
        """Return the seconds since the sweep began."""
        return time.monotonic() - self._origin

    def from_epoch(self, epoch_s: float) -> float:
        """Return the sweep time of a Unix time in seconds, as MLflow stamps metrics."""
        return epoch_s - self._epoch_origin

    def to_epoch(self, sweep_s: float) -> float:
        """Return the Unix time in seconds of a sweep time, if nothing interrupts the sweep until then."""
        return sweep_s + self._epoch_origin
