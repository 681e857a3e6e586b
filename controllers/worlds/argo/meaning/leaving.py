"""Which nodes go, and by when their pods must have left. Pure but for what was seen first."""

from collections.abc import Iterable
from typing import Final

from controllers.worlds.argo.reading.nodes import NodeRecord
from controllers.worlds.argo.reading.notices import Notice

MOST_AGE_S: Final = 3600.0
"""A notice that was first seen later than this after it says to have been given is taken for as new as it was seen."""
MOST_AHEAD_S: Final = 24 * 3600.0
"""A deadline beyond this makes no sense."""
_SKEW_S: Final = 5.0
"""Seconds by which clocks may be apart."""


class LeavingNodes:
    """The nodes that go, and since when each of their notices has been seen.

    Few notices say when they were given: those that do not, or lie, count from when they were first seen here.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], float] = {}

    def deadlines(self, nodes: Iterable[NodeRecord], now: float) -> dict[str, float]:
        """Return by when pods must have left each node that goes, by its name; all times are Unix seconds."""
        going = [node for node in nodes if node.notices]
        keys = [(node.name, notice.kind) for node in going for notice in node.notices]
        self._seen = {key: self._seen.get(key, now) for key in keys}
        return {
            node.name: min(_deadline(notice, self._seen[node.name, notice.kind]) for notice in node.notices)
            for node in going
        }


def _deadline(notice: Notice, seen_at: float) -> float:
    told, given = notice.told, notice.given_at
    if told is not None and seen_at - MOST_AGE_S <= told <= seen_at + MOST_AHEAD_S:
        return told
    believed = given is not None and seen_at - MOST_AGE_S <= given <= seen_at + _SKEW_S
    return (given if believed and given is not None else seen_at) + notice.within_s
