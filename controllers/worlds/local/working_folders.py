"""Working folders of trials' own: each begins as a copy of the project, with links to what is large."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from controllers.core.errors import SpeconError
from mlflow_hooks.foreign_json import parsed

LARGEST_FILE: Final = 10 * 2**20
"""Bytes from which a file is linked instead of copied."""
MOST_FILES: Final = 1_000
"""Files and folders in a folder, all levels counted, from which it is linked as a whole."""
MOST_BYTES: Final = 100 * 2**20
"""Bytes to copy of a folder, all levels counted, from which it is linked as a whole."""
MOST_AT_TOP: Final = 10_000
"""Files and folders that the project's own folder may hold at its top."""
_LINKED: Final = frozenset({".git", ".hg", ".svn", "node_modules"})
_ENVIRONMENT: Final = "pyvenv.cfg"
_RECORD: Final = ".specon-copied.json"
_HERE: Final = ".specon-here"
"""Beside the copies of what is above the project: a link to the working folder."""
_NEW: Final = ".new"

_Stamp = tuple[int, int]


class WorkingFolderError(SpeconError):
    """A trial cannot be given a working folder of its own."""


@dataclass(frozen=True, slots=True)
class Project:
    """What working folders are made of.

    ``folder`` is where the sweep was started. ``leave_out`` is never copied nor linked: where runs are kept. ``own``
    are paths within ``folder`` that are copied however large they are.
    """

    folder: Path
    leave_out: Path
    own: tuple[str, ...] = ()

    @property
    def top(self) -> Path:
        """The folder above the repository: programs read ``../data``, too.

        Where ``folder`` is in none, it may be an example that was copied out of one: such read ``../../data``.
        """
        within = (self.folder, *self.folder.parents)
        repository = next((folder for folder in within if (folder / ".git").exists()), None)
        return repository.parent if repository else self.folder.parent.parent


def working_folder(project: Project, root: Path) -> Path:
    """Return the working folder of a trial, made if need be and brought up to date.

    The folders between ``project.top`` and the project stand under ``root``, with links to all else that they hold.
    What the project has by now and had not before is added; what was edited there is copied again, unless the trial has
    changed its own copy. What the trial has written or deleted stays so.

    Args:
        project: what it begins as.
        root: where the trial's is, the same for all its attempts.

    Raises:
        WorkingFolderError: the project has too many files at its top, or the disk does not take it.
    """
    within = project.folder.relative_to(project.top)
    try:
        if not root.exists():
            # Made beside and renamed: whatever is killed in the middle leaves no half of it.
            new = root.with_name(root.name + _NEW)
            shutil.rmtree(new, ignore_errors=True)
            _Copying(project, new).run()
            new.rename(root)
        else:
            _Copying(project, root).run()
    except OSError as error:
        message = f"no working folder for a trial can be made in {root}: {error}"
        raise WorkingFolderError(message) from error
    return root / within


def made_before(root: Path) -> Path | None:
    """Return the working folder that was made under ``root``; None where none was."""
    here = root / _HERE
    return here.resolve() if here.exists() else None


@dataclass(slots=True)
class _Copying:
    """Copies and links; ``record`` tells of each path that was made when its original was changed, None of a link."""

    project: Project
    root: Path
    record: dict[str, _Stamp | None] = field(default_factory=dict)

    def run(self) -> None:
        with suppress(FileNotFoundError, ValueError):
            kept = parsed((self.root / _RECORD).read_text(encoding="utf-8"))
            self.record = {path: stamp and (stamp[0], stamp[1]) for path, stamp in kept.items()}
        above = [folder for folder in reversed(self.project.folder.parents) if folder.is_relative_to(self.project.top)]
        for folder, then in zip(above, [*above[1:], self.project.folder], strict=True):
            self._at(folder).mkdir(parents=True, exist_ok=True)
            for entry in _entries(folder, MOST_AT_TOP):
                if Path(entry.path) != then:
                    self._link(entry)
        self._copy_project()
        if not os.path.lexists(self.root / _HERE):
            (self.root / _HERE).symlink_to(self.project.folder.relative_to(self.project.top))
        part = self.root / f"{_RECORD}{_NEW}"
        part.write_text(json.dumps(self.record), encoding="utf-8")
        part.rename(self.root / _RECORD)

    def _copy_project(self) -> None:
        folder = self.project.folder
        entries = _entries(folder, MOST_AT_TOP + 1)
        if len(entries) > MOST_AT_TOP:
            message = (
                f"own_folder= gives each trial a copy of {folder}, which holds more than {MOST_AT_TOP} files and "
                "folders at its top: move data into a folder, or leave own_folder= out"
            )
            raise WorkingFolderError(message)
        self._at(folder).mkdir(parents=True, exist_ok=True)
        for entry in entries:
            self._take(entry, small=False)

    def _take(self, entry: os.DirEntry[str], *, small: bool) -> None:
        """Copy or link an entry of the project, or of a folder that is known to be ``small``."""
        path = Path(entry.path)
        if path == self.project.leave_out:
            return
        named, holds_named = self._is_named(path), self._holds_named(path)
        if entry.is_dir(follow_symlinks=False):
            copied = named or holds_named or not _is_tool(path)
            small = small or named or (copied and not holds_named and _is_small(path, self.project.leave_out))
            if copied and (small or holds_named):
                self._fill(path, small=small)
            else:
                self._link(entry)
        elif entry.is_file(follow_symlinks=False) and (named or entry.stat().st_size <= LARGEST_FILE):
            self._copy(entry)
        else:
            self._link(entry)

    def _fill(self, folder: Path, *, small: bool) -> None:
        own, known = self._at(folder), self._key(folder) in self.record
        if known and not own.is_dir():
            return  # the trial has deleted it
        self.record[self._key(folder)] = None
        own.mkdir(exist_ok=True)
        for entry in _entries(folder):
            self._take(entry, small=small)

    def _copy(self, entry: os.DirEntry[str]) -> None:
        path = Path(entry.path)
        own, key = self._at(path), self._key(path)
        stamp, before = _stamp(path), self.record.get(key)
        if stamp is None or stamp == before:
            return
        if (key in self.record or os.path.lexists(own)) and (before is None or _stamp(own) != before):
            return  # the trial has written or deleted it
        try:
            shutil.copy2(path, own, follow_symlinks=False)
        except FileNotFoundError:
            return  # it went meanwhile
        except PermissionError:
            self._link(entry)
            return
        self.record[key] = stamp

    def _link(self, entry: os.DirEntry[str]) -> None:
        own, key = self._at(Path(entry.path)), self._key(Path(entry.path))
        if key in self.record or os.path.lexists(own):
            return
        if str(self.project.leave_out) in {entry.path, os.path.realpath(entry.path)}:
            return
        own.symlink_to(entry.path)
        self.record[key] = None

    def _is_named(self, path: Path) -> bool:
        return any(path.is_relative_to(self.project.folder / own) for own in self.project.own)

    def _holds_named(self, path: Path) -> bool:
        return any((self.project.folder / own).is_relative_to(path) for own in self.project.own)

    def _key(self, path: Path) -> str:
        return str(path.relative_to(self.project.top))

    def _at(self, path: Path) -> Path:
        return self.root / path.relative_to(self.project.top)


def _is_tool(folder: Path) -> bool:
    """Return whether a folder belongs to a tool, as a repository's own or a virtual environment does."""
    return folder.name in _LINKED or (folder / _ENVIRONMENT).exists()


def _is_small(folder: Path, leave_out: Path) -> bool:
    """Return whether a folder is copied, for the number of files in it and their size."""
    size = 0
    for files, entry in enumerate(_walk(folder, leave_out), start=1):
        if entry.is_file(follow_symlinks=False):
            length = entry.stat().st_size
            size += length if length <= LARGEST_FILE else 0
        if files > MOST_FILES or size > MOST_BYTES:
            return False
    return True


def _walk(folder: Path, leave_out: Path) -> Iterator[os.DirEntry[str]]:
    for entry in _entries(folder):
        yield entry
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False) and path != leave_out and not _is_tool(path):
            yield from _walk(path, leave_out)


def _entries(folder: Path, most: int = MOST_AT_TOP) -> list[os.DirEntry[str]]:
    """Return what a folder holds, up to ``most``; nothing where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, most))
    except PermissionError:
        return []


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size


def read_own(text: str) -> tuple[str, ...] | None:
    """Return the paths that the annotation of a trial with a working folder of its own names; None where it has none.

    Raises:
        ValueError: it is no list of paths within the folder; the message tells.
    """
    if not text:
        return None
    try:
        paths = parsed(text)
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        message = f"{text!r}, which is no JSON list of paths"
        raise ValueError(message)
    check_own(paths)
    return tuple(paths)


def check_own(paths: Sequence[str]) -> None:
    """Refuse paths that do not name something within the folder.

    Raises:
        ValueError: the message tells which.
    """
    for path in paths:
        if not path or path == "." or Path(path).is_absolute() or ".." in Path(path).parts:
            message = f"{path!r}, which is no path within the folder that the sweep is started in"
            raise ValueError(message)
