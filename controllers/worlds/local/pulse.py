"""Whether a server on this machine still answers, asked again and again on a thread of its own.

One that hangs is told from one that is slow only by how long it is silent.
"""

import http.client
import threading
import time
import urllib.error
import urllib.request
from typing import Final

_EVERY_S: Final = 2.0
_AT_FIRST_S: Final = 0.5
"""Seconds between two questions until the first answer."""
_ANSWER_S: Final = 5.0
_OK: Final = 200


def answers(url: str, within_s: float) -> bool:
    """Return whether a GET of ``url`` succeeds within ``within_s`` seconds."""
    try:
        with urllib.request.urlopen(url, timeout=within_s) as answer:  # noqa: S310 - a server that we started
            return bool(answer.status == _OK)
    except (urllib.error.URLError, OSError, http.client.HTTPException):
        return False


class Pulse:
    """Asks for ``url`` again and again once it was started, and notes when that last succeeded."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._beat_at: float | None = None
        self._began_at = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def silent_s(self) -> float:
        """Seconds since the last answer, or since ``restart`` where there was none after it."""
        return time.monotonic() - (self._began_at if self._beat_at is None else self._beat_at)

    @property
    def heard(self) -> bool:
        """Whether there was an answer since ``restart``."""
        return self._beat_at is not None

    def restart(self) -> None:
        """Ask from now on; what was heard before was of another process."""
        self._beat_at, self._began_at = None, time.monotonic()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ask no more."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            began = self._began_at
            if answers(self._url, _ANSWER_S) and began == self._began_at:
                self._beat_at = time.monotonic()
            self._stop.wait(_EVERY_S if self.heard else _AT_FIRST_S)
