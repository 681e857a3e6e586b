"""What shares were refused of late, so that none is asked for again each second, and each is once more after a while.

A policy wants the same again at its next look. The time until a share is asked for once more doubles with each refusal.
It is over at once where the pod's node or its kubelet is another one: most reasons lie there.
"""

from dataclasses import dataclass
from typing import Final

from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.room import NodeRoom
from controllers.worlds.argo.reading.resize_answers import ResizeAnswer

FIRST_S: Final = 30.0
"""Seconds until a share is asked for once more that was refused for its amount."""
FIRST_FOR_GOOD_S: Final = 300.0
"""Seconds until any is, where the pod, its node or the cluster allows none."""
MOST_S: Final = 1800.0


@dataclass(frozen=True, slots=True)
class _Denial:
    """A refusal: ``wanted`` cores instead of ``instead_of``, seen ``at`` seconds, for ``length_s``."""

    answer: ResizeAnswer
    wanted: float
    instead_of: float
    at: float
    length_s: float
    nodes: tuple[str, ...]

    def covers(self, cpu: float) -> bool:
        """Return whether a wish for ``cpu`` cores would be refused as well."""
        if self.answer.any_amount:
            return True
        return cpu >= self.wanted if self.wanted > self.instead_of else cpu <= self.wanted


class DeniedShares:
    """Remembers the refusals of a campaign's attempts. Refusals are noted from any thread."""

    def __init__(self) -> None:
        self._by_attempt: dict[str, _Denial] = {}

    def note(self, attempt: Attempt, wanted: float, answer: ResizeAnswer, room: NodeRoom, now: float) -> None:
        """Take note that ``wanted`` cores were refused.

        Args:
            attempt: As it was before.
            wanted: Cores for each worker.
            answer: Why not.
            room: The nodes as they are.
            now: Seconds of a clock that never goes back.
        """
        first = FIRST_FOR_GOOD_S if answer.any_amount else FIRST_S
        before = self._by_attempt.get(attempt.uid)
        again = before is not None and before.answer.any_amount == answer.any_amount
        length = min(MOST_S, 2 * before.length_s) if before is not None and again else first
        nodes = _nodes(attempt, room)
        self._by_attempt[attempt.uid] = _Denial(answer, wanted, attempt.share.has, now, length, nodes)

    def why_not(self, attempt: Attempt, cpu: float, room: NodeRoom, now: float) -> str | None:
        """Return why ``cpu`` cores are not asked for at ``now``, None where they may be."""
        denial = self._by_attempt.get(attempt.uid)
        if denial is None or now >= denial.at + denial.length_s or denial.nodes != _nodes(attempt, room):
            return None
        return denial.answer.line if denial.covers(cpu) else None

    def forget_all_but(self, uids: frozenset[str]) -> None:
        """Drop what is remembered of attempts that are gone."""
        for uid in self._by_attempt.keys() - uids:
            del self._by_attempt[uid]


def _nodes(attempt: Attempt, room: NodeRoom) -> tuple[str, ...]:
    """Return what tells the nodes of an attempt as they are from how they were."""
    records = (room.nodes.get(name) for name in attempt.nodes)
    return tuple(f"{record.name} {record.kubelet} {record.cpu:g}" if record else "" for record in records)
