"""Which files of a working folder changed of late: a look that is bounded in files and depth, and taken in parts."""

import math
import os
import re
import stat
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

MOST_FILES: Final = 20_000
"""Files and folders that one look takes in; the folders nearest to the top come first."""
_DEEPEST: Final = 64
"""Folders within folders. No link is followed, so this is only met where somebody means harm."""
_AT_A_TIME: Final = 64
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


class Looking:
    """A look at the regular files of a folder that is taken in parts, since it may take long.

    Follows no link, and enters no other file system.

    Args:
        folder: where to look.
        since: files that changed before are left out; seconds since 1970.
        leave_out: files and folders to leave out, as device and inode.
        most: how many files and folders are taken in.
    """

    def __init__(
        self, folder: Path, since: float, leave_out: Collection[tuple[int, int]] = (), most: int = MOST_FILES
    ) -> None:
        self._since, self._leave_out, self._most = since, frozenset(leave_out), most
        self._changed: dict[str, float] = {}
        self._whole, self._took_s = True, 0.0
        self._files = self._walk(folder)

    def go_on(self, for_s: float) -> Look | None:
        """Look on for about ``for_s`` seconds; return what was found once all was looked at, None until then."""
        began = now = time.monotonic()
        while now < began + for_s:
            some = list(islice(self._files, _AT_A_TIME))
            self._changed |= {path: at for path, at in some if at >= self._since}
            now = time.monotonic()
            if len(some) < _AT_A_TIME:
                return Look(self._changed, self._whole, self._took_s + now - began)
        self._took_s += now - began
        return None

    def _walk(self, folder: Path) -> Iterator[tuple[str, float]]:
        """Yield the path of each file or folder within ``folder``, and when it last changed, never for a folder."""
        seen, queue = 0, deque([(str(folder), "", 0)])
        while queue:
            path, within, depth = queue.popleft()
            for entry in _entries(path):
                seen += 1
                if seen > self._most:
                    self._whole = False
                    return
                status = self._stat(entry)
                if status is None:
                    continue
                inner = stat.S_ISDIR(status.st_mode)
                if inner and depth < _DEEPEST:
                    queue.append((entry.path, f"{within}{entry.name}/", depth + 1))
                elif inner:
                    self._whole = False
                yield within + entry.name, -math.inf if inner else status.st_mtime

    def _stat(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Return what the system tells of a file or folder; None of one that is left out."""
        inner = entry.is_dir(follow_symlinks=False)
        if not inner and not entry.is_file(follow_symlinks=False):
            return None
        if (entry.name in _NO_FOLDERS) if inner else _NO_FILES.search(entry.name):
            return None
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return None  # it is gone
        mounted = inner and os.path.ismount(entry.path)
        return None if mounted or (status.st_dev, status.st_ino) in self._leave_out else status


def _entries(path: str) -> list[os.DirEntry[str]]:
    """Return what a folder holds; nothing where it cannot be read, or is a virtual environment."""
    try:
        with os.scandir(path) as entries:
            listed = list(entries)
    except OSError:
        return []
    return [] if any(entry.name == _ENVIRONMENT for entry in listed) else listed
