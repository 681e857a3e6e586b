"""Which files of a working folder changed of late: a look that is bounded in files, depth and time."""

import os
import re
import stat
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_FILES: Final = 20_000
"""Files and folders that one look takes in; the folders nearest to the top come first."""
_DEEPEST: Final = 8
_LONGEST_S: Final = 0.25
_AT_A_TIME: Final = 256
"""Files between two looks at the clock."""
_NO_FOLDERS: Final = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", "mlruns", "mlartifacts", "wandb"})
"""Folders of tools that keep the files of several processes apart themselves, or that no trial writes."""
_NO_FILES: Final = re.compile(r"\.(py|pyc|ipynb|lock|sw[op]|(db|sqlite3?)(-(wal|shm|journal))?)$|~$")
"""Files that people edit while a sweep runs, locks, and data bases: these are made for several writers."""
_ENVIRONMENT: Final = "pyvenv.cfg"


@dataclass(frozen=True, slots=True)
class Look:
    """When each file last changed, in seconds since 1970, by its path within the folder.

    ``whole`` tells that nothing was left out for the sake of the bounds, ``took_s`` how long it took.
    """

    changed: Mapping[str, float]
    whole: bool
    took_s: float


def look_at(folder: Path, since: float, leave_out: Collection[tuple[int, int]], most: int = MOST_FILES) -> Look:
    """Return the regular files under ``folder`` that changed at ``since`` or later.

    Follows no link, and enters no other file system.

    Args:
        folder: where to look.
        since: seconds since 1970.
        leave_out: files and folders, as device and inode.
        most: how many files and folders are taken in.
    """
    began = time.monotonic()
    walk = _Walk(frozenset(leave_out), most, began + _LONGEST_S)
    changed = {path: found.st_mtime for path, found in walk.files(folder) if found.st_mtime >= since}
    return Look(changed, walk.whole, time.monotonic() - began)


@dataclass(slots=True)
class _Walk:
    """A walk through a folder, from the top down; ``whole`` tells that it came to its end."""

    leave_out: frozenset[tuple[int, int]]
    most: int
    deadline: float
    whole: bool = True

    def files(self, folder: Path) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the path of each regular file within ``folder``, and what the system tells of it."""
        seen, queue = 0, deque([(str(folder), "", 0)])
        while queue:
            path, within, depth = queue.popleft()
            for entry in _entries(path):
                seen += 1
                if seen > self.most or (seen % _AT_A_TIME == 0 and time.monotonic() > self.deadline):
                    self.whole = False
                    return
                found = self._stat(entry)
                if found is None:
                    continue
                if stat.S_ISREG(found.st_mode):
                    yield within + entry.name, found
                elif depth < _DEEPEST:
                    queue.append((entry.path, f"{within}{entry.name}/", depth + 1))
                else:
                    self.whole = False

    def _stat(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Return what the system tells of a file or folder; None of one that is left out."""
        inner = entry.is_dir(follow_symlinks=False)
        if not inner and not entry.is_file(follow_symlinks=False):
            return None
        if (entry.name in _NO_FOLDERS) if inner else _NO_FILES.search(entry.name):
            return None
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return None  # it is gone
        mounted = inner and os.path.ismount(entry.path)
        return None if mounted or (found.st_dev, found.st_ino) in self.leave_out else found


def _entries(path: str) -> list[os.DirEntry[str]]:
    """Return what a folder holds; nothing where it cannot be read, or is a virtual environment."""
    try:
        with os.scandir(path) as entries:
            found = list(entries)
    except OSError:
        return []
    return [] if any(entry.name == _ENVIRONMENT for entry in found) else found
