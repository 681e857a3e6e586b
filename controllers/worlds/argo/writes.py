"""Calls that change the cluster, made by a few threads so that no decision waits for an API server."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from controllers.worlds.argo.api import ApiError

_LOG = logging.getLogger(__name__)
_THREADS = 6


class Writes:
    """Runs one call at a time for each key, several for all keys.

    Changes of shares have threads of their own: in a large sweep thousands may wait, and no move waits for them.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="writes")
        self._share_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="shares")
        self._busy: dict[str, Future[None]] = {}
        self._shares: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    def busy(self, key: str) -> bool:
        """Whether a call for ``key`` is waiting or under way."""
        return key in self._busy

    def submit(
        self, key: str, call: Callable[[], None], done: Callable[[ApiError | None], None], *, share: bool = False
    ) -> bool:
        """Have ``call`` made soon, then ``done`` with its error; refused (False) while ``key`` is busy.

        Both are called on another thread. An error of another kind than ``ApiError`` is a defect: it is logged whole.
        ``share`` tells that the call changes a share, and no more.
        """
        with self._lock:
            if key in self._busy or self._closed:
                return False
            self._busy[key] = (self._share_pool if share else self._pool).submit(self._run, key, call, done)
            if share:
                self._shares.add(key)
        return True

    def overtake(self, key: str) -> bool:
        """Drop a change of the share of ``key`` that has not begun; return whether one was dropped."""
        with self._lock:
            if key not in self._shares or not self._busy[key].cancel():
                return False
            self._forget(key)
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
        for pool in (self._pool, self._share_pool):
            pool.shutdown(cancel_futures=True)

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
                self._forget(key)

    def _forget(self, key: str) -> None:
        del self._busy[key]
        self._shares.discard(key)
