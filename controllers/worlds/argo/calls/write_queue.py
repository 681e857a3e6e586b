"""The threads that make calls to the API server, one at a time for each thing that is changed."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal

from controllers.worlds.argo.calls.errors import ApiError

_LOG = logging.getLogger(__name__)
_THREADS = 6
_SIGNAL_THREADS = 2
"""Of a namespace, for each kind of change; started as they are needed."""


class WriteQueue:
    """Makes one call at a time for each key, and several at a time for different keys.

    Each namespace has threads of its own, so that nothing of one waits for what another has to do, or for what hangs
    there. Within it, changes of shares have their own, since thousands may wait and no move waits for them; so have
    signals, which go through the kubelet of the pod's node and into the pod, where anything may hang.
    """

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str], ThreadPoolExecutor] = {}
        self._busy: dict[str, Future[None]] = {}
        self._shares: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    def busy(self, key: str) -> bool:
        """Whether a call for ``key`` is waiting or under way."""
        return key in self._busy

    def submit(
        self,
        key: str,
        call: Callable[[], None],
        done: Callable[[ApiError | None], None],
        *,
        namespace: str = "",
        kind: Literal["writes", "shares", "signals"] = "writes",
    ) -> bool:
        """Have ``call`` made soon, then ``done`` with its error; refused (False) while ``key`` is busy.

        Both are called on another thread. An error of another kind than ``ApiError`` is a defect: it is logged whole.
        ``namespace`` is that of what is changed; ``kind`` tells whether a share is changed and no more, or something is
        run in a pod.
        """
        with self._lock:
            if key in self._busy or self._closed:
                return False
            self._busy[key] = self._pool(namespace, kind).submit(self._run, key, call, done)
            if kind == "shares":
                self._shares.add(key)
        return True

    def _pool(self, namespace: str, kind: str) -> ThreadPoolExecutor:
        if (namespace, kind) not in self._pools:
            threads = _SIGNAL_THREADS if kind == "signals" else _THREADS
            self._pools[namespace, kind] = ThreadPoolExecutor(threads, thread_name_prefix=f"{kind}-{namespace}")
        return self._pools[namespace, kind]

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
        for pool in self._pools.values():
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
            _LOG.exception("a change of the cluster failed: %s", key)
        finally:
            with self._lock:
                self._forget(key)

    def _forget(self, key: str) -> None:
        del self._busy[key]
        self._shares.discard(key)
