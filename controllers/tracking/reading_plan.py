"""Which runs of a sweep MLflow is asked for. Pure; times in seconds of any clock that only goes forward.

A server takes about a millisecond for each run that it answers with, and late in a large sweep most have ended. Nothing
comes of these any more, so they are asked for seldom: now and then all runs, in between only those that go on.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

WHOLE_S: Final = 30.0
"""Seconds between two readings of all runs, at least: what is logged after a run's end is seen that much later."""
SOON_S: Final = 5.0
"""The same where trials were submitted since the last reading."""
WAIT: Final = 20.0
"""The next reading of all runs waits so many times as long as the last one took: a large sweep's takes seconds."""
WATCHED_S: Final = 30.0
"""For so many seconds after its last change, a run that does not go on is still asked for each time."""


@dataclass(slots=True)
class _Known:
    """Whether a run goes on, as MLflow tells, and when it was last seen to change."""

    going_on: bool
    changed_at: float


class ReadingPlan:
    """Tells which runs are due, from what was found before."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._watched: set[str] = set()
        self._trials = 0
        self._whole_at = self._soon_at = -math.inf

    def whole_is_due(self, now: float, trials: int) -> bool:
        """Return whether all runs are due, of so many ``trials``."""
        return now >= self._whole_at or (trials != self._trials and now >= self._soon_at)

    def read_whole(self, began: float, now: float, trials: int) -> None:
        """Take note of a reading of all runs, from ``began`` until ``now``."""
        took = now - began
        self._trials = trials
        self._whole_at, self._soon_at = now + max(WHOLE_S, WAIT * took), now + max(SOON_S, WAIT * took)

    def due(self, going_on: Collection[str], now: float) -> list[str]:
        """Return the ids of the runs that are due beside those ``going_on``.

        These are the runs that went on before and do not any more, and those that changed a short time ago.
        """
        for run_id in [watched for watched in self._watched if not self._is_watched(self._known[watched], now)]:
            self._watched.remove(run_id)
        return sorted(self._watched.difference(going_on))

    def read(self, run_id: str, now: float, *, going_on: bool, changed: bool) -> None:
        """Take note of a run that was read."""
        before = self._known.get(run_id)
        # What had ended when it was first seen did not change just now.
        changed_at = now if changed and before is not None else before.changed_at if before is not None else -math.inf
        known = self._known[run_id] = _Known(going_on, changed_at)
        if self._is_watched(known, now):
            self._watched.add(run_id)

    def gone(self, run_id: str) -> None:
        """Take note of a run that is not there any more."""
        self._known.pop(run_id, None)
        self._watched.discard(run_id)

    @staticmethod
    def _is_watched(known: _Known, now: float) -> bool:
        return known.going_on or now < known.changed_at + WATCHED_S
