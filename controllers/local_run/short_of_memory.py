"""Tells of attempts that were killed because the machine had no memory left, and what becomes of their trials."""

from collections.abc import Callable, Iterable
from typing import Final

from controllers.worlds.local.gauge import MemoryThere
from controllers.worlds.local.jobs import LocalJob

MOST_TOLD: Final = 5
_GB: Final = 1e9


class ShortOfMemory:
    """Remembers how often attempts of each trial were killed for memory, and says so of each further time.

    Args:
        jobs: the jobs that a run begins with.
        short: the name of a trial, by its id.
    """

    def __init__(self, jobs: Iterable[LocalJob], short: Callable[[str], str]) -> None:
        self._kills = {job.id: job.memory_kills for job in jobs}
        self._short = short
        self._told = 0

    def look(self, jobs: Iterable[LocalJob], there: MemoryThere) -> list[str]:
        """Return a line for each trial that was killed for memory since the last look.

        All that have failed for that are told of; of those that are tried again, the first few of a run.
        """
        new = [job for job in jobs if job.memory_kills > self._kills.get(job.id, 0)]
        self._kills |= {job.id: job.memory_kills for job in new}
        again = [job for job in new if not job.phase.ended][: MOST_TOLD - self._told]
        self._told += len(again)
        return [
            *(f"{self._held(job, there)}; it is tried once more, alone, which counts as no failure" for job in again),
            *(
                f"{self._held(job, there)} although it ran alone: it needs more memory than there is, and has failed"
                for job in new
                if job.phase.ended
            ),
        ]

    def _held(self, job: LocalJob, there: MemoryThere) -> str:
        name = self._short(job.trial) if job.trial else job.id
        held = f"when it held {_gb(job.memory_peak)}" if job.memory_peak else "before it was measured"
        return f"{name} was killed for want of memory {held} of the {_gb(there.total)} that there are"


def _gb(size: float) -> str:
    return f"{size / _GB:.2g} GB" if size < _GB else f"{size / _GB:.1f} GB"
