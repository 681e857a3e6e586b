"""A record that only grows, line by line: a full disk delays it, and neither tears it nor ends the sweep."""

import logging
import os
from pathlib import Path

from mlflow_hooks.no_links import open_file, reading

_LOG = logging.getLogger(__name__)


class LineFile:
    """Appends whole lines to ``path``; a last line that a crash left unfinished is cut off first.

    Where the disk fails, it says so once; the lines wait in memory and go first the next time.

    Raises:
        OSError: what is there cannot be read, or not be cut off.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting = b""
        self._complained = False
        if path.exists():
            _cut_unfinished(path)

    def append(self, text: str) -> None:
        """Append ``text``, whole lines, in one write where the disk takes it."""
        self._waiting += text.encode()
        if not self._waiting:
            return
        try:
            handle = open_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                while self._waiting:
                    self._waiting = self._waiting[os.write(handle, self._waiting) :]
            finally:
                os.close(handle)
        except OSError as error:
            if not self._complained:
                _LOG.warning("cannot write to %s (%s); the sweep goes on, and it is tried again", self._path, error)
            self._complained = True


def _cut_unfinished(path: Path) -> None:
    with reading(path) as file:
        content = file.read()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
