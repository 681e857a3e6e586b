"""Fencing: the newest attempt of a trial owns its state folder, every older one must let go."""

import math
import time
from pathlib import Path
from typing import Final

from mlflow_hooks.files import write_whole

LATELY_S: Final = 0.1


class Ownership:
    """The claim of one attempt on the state folder, by a token in the file ``owner``."""

    def __init__(self, folder: Path, token: str) -> None:
        self._path = folder / "owner"
        self._token = token
        self._seen: tuple[int, int] | None = None
        self._asked_at = -math.inf
        self.lost = False

    def claim(self) -> None:
        """Take the folder over from whichever attempt had it."""
        write_whole(self._path, self._token)

    def held(self) -> bool:
        """Return whether the folder is still ours; once lost it stays lost.

        Asks the file system each time, but reads the file only when it was replaced.
        """
        if not self.lost:
            self.lost = not self._still_ours()
        return not self.lost

    def held_lately(self) -> bool:
        """Return what ``held`` returned within the last 0.1 s: for every step of a training."""
        now = time.monotonic()
        if now < self._asked_at + LATELY_S:
            return not self.lost
        self._asked_at = now
        return self.held()

    def _still_ours(self) -> bool:
        try:
            stat = self._path.stat()
            mark = (stat.st_ino, stat.st_mtime_ns)
            if mark != self._seen and self._path.read_text() != self._token:
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True  # a file system that stutters is not another attempt
        self._seen = mark
        return True
