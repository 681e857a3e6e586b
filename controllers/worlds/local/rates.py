"""How fast a counter grows."""

from collections import deque


class RateMeter:
    """Turns a growing counter of CPU seconds into cores used, averaged over the last ``window_s`` seconds."""

    def __init__(self, window_s: float = 5.0) -> None:
        self._window_s = window_s
        self._readings: deque[tuple[float, float]] = deque()

    def read(self, now: float, total: float) -> float:
        """Take a reading; return the mean number of cores used over the window, 0 at the first one."""
        self._readings.append((now, total))
        while len(self._readings) > 2 and self._readings[1][0] <= now - self._window_s:  # noqa: PLR2004 - a pair spans the window
            self._readings.popleft()
        since, before = self._readings[0]
        return max(0.0, total - before) / (now - since) if now > since else 0.0
