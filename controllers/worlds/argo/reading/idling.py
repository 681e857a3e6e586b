"""Attempts that leave unasked and come no further: after some in a row they count as failures, as on one machine. Pure.

Argo's expressions see the newest attempt only, and always follow one that left by another. So a controller counts, and
keeps the counts on the pods: each has those of the attempts before it.
"""

from dataclasses import dataclass
from typing import Final, Self

from controllers.core.after_attempt import AttemptHistory
from controllers.worlds.argo.calls.untrusted import count
from controllers.worlds.argo.reading.pod_ends import Leaving


@dataclass(frozen=True, slots=True)
class Idling:
    """How often a trial left.

    Attributes:
        barren: attempts in a row that left unasked and came no further.
        gained: the step that it had come to when it last left.
        counted: those of all its attempts that left and count as failures.
    """

    barren: int = 0
    gained: int = 0
    counted: int = 0

    @classmethod
    def read(cls, written: str) -> Self | None:
        """Return what ``str`` gives back; None where there is nothing that makes sense."""
        parts = written.split(",")
        return cls(*map(count, parts)) if len(parts) == len(cls.__slots__) else None

    def __str__(self) -> str:
        return f"{self.barren},{self.gained},{self.counted}"

    def after(self, leaving: Leaving | None, *, asked: bool) -> "Idling":
        """Return the counts after an attempt; ``leaving`` is how it left, None where it ended in another way.

        ``asked`` tells that it was to leave.
        """
        if leaving is None:
            return self
        asked = asked or leaving.disrupted
        before = AttemptHistory(barren=self.barren, gained=self.gained)
        after = before.after_leaving(leaving.step, asked=asked)
        return Idling(after.barren, after.gained, self.counted + (after.leaves_in_vain and not asked))


NO_IDLING: Final = Idling()
