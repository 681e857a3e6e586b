"""Tells of attempts that failed where another one goes on: a trial that ends well may have been killed on its way."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.standing import Standing

MOST_TOLD: Final = 5
_SIGNALLED: Final = 128


class FailedAttempts:
    """Remembers how often each trial has failed, and says of each further time how, and where the trial goes on.

    A trial that failed for good, or that may begin from nothing, is told of elsewhere.

    Args:
        jobs: the jobs that a run begins with.
        short: the name of a trial, by its id.
    """

    def __init__(self, jobs: Iterable[LocalJob], short: Callable[[str], str]) -> None:
        self._failures = {job.id: job.failures for job in jobs}
        self._short = short
        self._told = 0

    def look(self, jobs: Iterable[LocalJob], standings: Callable[[], Mapping[str, Standing]]) -> list[str]:
        """Return a line for each trial that failed since the last look and goes on; the first few of a run."""
        new = [job for job in jobs if job.failures > self._failures.get(job.id, 0)]
        self._failures |= {job.id: job.failures for job in new}
        where = standings() if new else {}
        lines = [
            f"an attempt of {name} {_ending(job.exit_code)}: the next one {where[name]}"
            for job in new
            if (name := self._short(job.trial)) in where and where[name].loses_nothing
        ][: MOST_TOLD - self._told]
        self._told += len(lines)
        return lines


def _ending(code: int) -> str:
    """Return in words how an attempt ended, by its exit code as a shell gives it."""
    return f"was killed by signal {code - _SIGNALLED}" if code > _SIGNALLED else f"failed with exit code {code}"
