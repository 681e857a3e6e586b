"""Which files of a working folder changed of late: a look that is bounded in files, depth and time."""

import os
import re
import time
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_FILES: Final = 20_000
"""Files and folders that one look takes in; the folders nearest to the top come first."""
_DEEPEST: Final = 8
_LONGEST_S: Final = 0.25
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
    changed: dict[str, float] = {}
    seen, whole = 0, True
    queue = deque([(str(folder), "", 0)])
    try:
        device = folder.stat().st_dev
    except OSError:
        return Look({}, whole=False, took_s=0.0)
    while queue:
        path, within, depth = queue.popleft()
        for entry in _entries(path):
            seen += 1
            if seen > most or (seen % 256 == 0 and time.monotonic() - began > _LONGEST_S):
                return Look(changed, whole=False, took_s=time.monotonic() - began)
            if entry.is_symlink():
                continue
            inner = entry.is_dir(follow_symlinks=False)
            if (entry.name in _NO_FOLDERS) if inner else _NO_FILES.search(entry.name):
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it is gone
            if (found.st_dev, found.st_ino) in leave_out or found.st_dev != device:
                continue
            if inner and depth < _DEEPEST:
                queue.append((entry.path, f"{within}{entry.name}/", depth + 1))
            elif inner:
                whole = False
            elif found.st_mtime >= since and entry.is_file(follow_symlinks=False):
                changed[within + entry.name] = found.st_mtime
    return Look(changed, whole, time.monotonic() - began)


def _entries(path: str) -> list[os.DirEntry[str]]:
    """Return what a folder holds; nothing where it cannot be read, or is a virtual environment."""
    try:
        with os.scandir(path) as entries:
            found = list(entries)
    except OSError:
        return []
    return [] if any(entry.name == _ENVIRONMENT for entry in found) else found
