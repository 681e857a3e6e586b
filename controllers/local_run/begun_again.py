"""Tells of trials that began again from nothing, by what they logged: their scripts keep no checkpoint."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from controllers.worlds.local.jobs import LocalJob

_MOST: Final = 5
"""Trials that are told of, where there are many."""


class BegunAgain:
    """Notices it.

    Args:
        short: returns a trial's id as people know it.
    """

    def __init__(self, short: Callable[[str], str]) -> None:
        self._short = short
        self._begun: dict[str, int] = {}

    def look(self, jobs: Iterable[LocalJob]) -> Iterator[str]:
        """Yield a line for each trial that has begun again since the last look; for the first few trials."""
        for job in jobs:
            before, self._begun[job.id] = self._begun.get(job.id, 0), job.begun_again
            if job.begun_again > before and sum(map(bool, self._begun.values())) <= _MOST:
                yield (
                    f"{self._short(job.trial)} began again from nothing, as far as its steps tell; what it logged "
                    "before does not count. A script with hooks goes on (docs/how-to/instrument-a-training-script.md)"
                )
