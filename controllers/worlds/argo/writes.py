"""Calls that change the cluster, made by a few threads so that no decision waits for an API server."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from controllers.worlds.argo.api import ApiError

_LOG = logging.getLogger(__name__)
_THREADS = 8


class Writes:
    """Runs one call at a time for each key, eight at once for all keys."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="writes")
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    def busy(self, key: str) -> bool:
        """Whether a call for ``key`` is waiting or under way."""
        return key in self._busy

    def submit(self, key: str, call: Callable[[], None], done: Callable[[ApiError | None], None]) -> bool:
        """Have ``call`` made soon, then ``done`` with its error; refused (False) while ``key`` is busy.

        Both are called on another thread. An error of another kind than ``ApiError`` is a defect: it is logged whole.
        """
        with self._lock:
            if key in self._busy or self._closed:
                return False
            self._busy.add(key)
            self._pool.submit(self._run, key, call, done)
        return True

    def wait_idle(self, within_s: float) -> bool:
        """Wait until nothing is waiting or under way, at most ``within_s``; return whether that is so."""
        deadline = time.monotonic() + within_s
        while self._busy and time.monotonic() < deadline:
            time.sleep(0.005)
        return not self._busy

    def close(self) -> None:
        """Drop what is waiting, and wait for what is under way."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(cancel_futures=True)

    def _run(self, key: str, call: Callable[[], None], done: Callable[[ApiError | None], None]) -> None:
        failure: ApiError | None = None
        try:
            try:
                call()
            except ApiError as error:
                failure = error
            done(failure)
        except Exception:  # noqa: BLE001 - a thread that dies silently would leave its key busy for good
            _LOG.exception("a change of the cluster went wrong: %s", key)
        finally:
            with self._lock:
                self._busy.discard(key)
