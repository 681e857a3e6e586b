"""Shows what trials have to tell the person who runs the sweep, such as that a move would lose something."""

import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks.foreign_files import first_bytes
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.state_folder import NOTICES

_MOST_TOLD: Final = 5
"""Notices of a sweep that are shown."""
_MOST_BYTES: Final = 16 * 1024
_LONGEST: Final = 500


class Notices:
    """Reads the notices of each trial where they are new; what one trial tells is not shown again for another.

    Args:
        state: folder of the trials' state folders.
        short: the name of a trial, by its id.
    """

    def __init__(self, state: Path, short: Callable[[str], str]) -> None:
        self._state, self._short = state, short
        self._seen: dict[str, int] = {}
        self._told: set[str] = set()

    def look(self, jobs: Iterable[LocalJob]) -> list[str]:
        """Return a line for each notice that is new in this run."""
        lines = []
        for job in (job for job in jobs if job.trial and job.placed):
            for text in self._new(job.trial):
                if text not in self._told and len(self._told) < _MOST_TOLD:
                    self._told.add(text)
                    lines.append(f"{self._short(job.trial)}: {text}")
        return lines

    def _new(self, trial: str) -> list[str]:
        """Return the notices of a trial if their file has changed; a script may have written anything there."""
        path = self._state / trial / NOTICES
        try:
            status = path.stat()
            if self._seen.get(trial) == status.st_mtime_ns or not stat.S_ISREG(status.st_mode):
                return []
            self._seen[trial] = status.st_mtime_ns
            written = parsed(first_bytes(path, _MOST_BYTES))
        except (OSError, ValueError):
            return []
        texts = [text for text in written if isinstance(text, str)] if isinstance(written, list) else []
        return ["".join(filter(str.isprintable, text[:_LONGEST])) for text in texts]
