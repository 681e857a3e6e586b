"""Polls a tracking server on one thread for all sweeps.

No tick waits for it, and its queries come one after the other: of fifty at once, none is answered in time.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Self

from controllers.core.model import Sample, TrialId
from controllers.core.ports import MetricSource

_LOG = logging.getLogger(__name__)
_STOP_S = 10.0
_OWNER_S = 5.0
"""Seconds of a round that the sources of one owner get where there are other owners."""
_MOST_OTHERS = 4
"""An owner that took longer rests for the turns of so many others at most."""


class Latest:
    """A source that never waits: it returns what was last read of another."""

    def __init__(self, source: MetricSource, owner: str = "") -> None:
        self._source = source
        self.owner = owner
        self.read_at = -math.inf
        self._newest: Mapping[TrialId, Sample] = {}

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return what the last query found; ``at`` of each sample tells how old it is."""
        return self._newest

    def read(self) -> None:
        """Ask the source; where it finds nothing, keep what it found before."""
        self.read_at = time.monotonic()
        samples = self._source.poll()
        if samples:
            self._newest = samples


class BackgroundReader:
    """Polls sources in turn, on a thread of its own, while its context lasts.

    Sources that take long delay mostly those of their own owner.

    Args:
        period_s: least time between two turns of a source, in seconds.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._new: deque[Latest] = deque()
        self._followed: list[Latest] = []
        self._spent: dict[str, float] = {}
        self._rests: dict[str, float] = {}
        self._stop = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._wake.set()
        self._thread.join(timeout=_STOP_S)

    @contextmanager
    def follow(self, source: MetricSource, owner: str = "") -> Iterator[Latest]:
        """Read ``source`` at once, and again in each round, while the context lasts; ``owner`` is whose it is."""
        latest = Latest(source, owner)
        self._followed.append(latest)
        self._new.append(latest)
        self._wake.set()
        try:
            yield latest
        finally:
            self._followed.remove(latest)

    def _run(self) -> None:
        while not self._stop:
            began = time.monotonic()
            self._spent.clear()
            # Who had to wait last time is read first.
            for latest in sorted(self._followed, key=lambda latest: latest.read_at):
                self._read_new()
                self._read(latest)
            # A round over thousands of trials takes seconds; it must not take all of a core, here or at the server.
            self._rest_until(began + max(self._period_s, 2 * (time.monotonic() - began)))

    def _rest_until(self, deadline: float) -> None:
        while not self._stop and (left := deadline - time.monotonic()) > 0:
            self._read_new()
            self._wake.wait(left)
            self._wake.clear()

    def _read_new(self) -> None:
        while self._new:
            self._read(self._new.popleft())

    def _read(self, latest: Latest) -> None:
        with suppress(ValueError):
            self._new.remove(latest)
        began = time.monotonic()
        if self._stop or latest not in self._followed or began < self._rests.get(latest.owner, 0.0):
            return
        try:
            latest.read()
        except Exception:  # noqa: BLE001 - one source that goes wrong must not leave all others unread
            _LOG.exception("could not read a source of metrics")
        self._note(latest.owner, time.monotonic() - began)

    def _note(self, owner: str, took_s: float) -> None:
        """Let an owner rest that took more than its part of the round."""
        self._spent[owner] = self._spent.get(owner, 0.0) + took_s
        others = len({latest.owner for latest in list(self._followed)} - {owner})
        if self._spent[owner] > _OWNER_S:
            self._rests[owner] = time.monotonic() + self._spent[owner] * min(others, _MOST_OTHERS)
            self._spent[owner] = 0.0
