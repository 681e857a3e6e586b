"""Files and folders below a place that others may write to, too: opened one by one, through no symbolic link.

A link in a shared folder may have been put there by somebody else, and lead to what only we may read or remove. What
is above the place is the user's own choice, and may well be a link.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_DEPTH: Final = 64
"""Folders within folders that are looked into: those of a checkpoint are three or four."""


def open_file(path: Path | str, flags: int, mode: int = 0o666, folder: int | None = None) -> int:
    """Return a descriptor of an ordinary file; neither a link nor a pipe, which could make us wait, is opened.

    Args:
        path: of the file, or its name in ``folder``.
        flags: as of ``os.open``.
        mode: of a file that is made.
        folder: a descriptor of its folder.

    Raises:
        OSError: it cannot be opened, or is none; it names ``path``.
    """
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=folder)
    except OSError as error:
        raise _told(error, path, folder) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is no ordinary file", str(path))
    os.set_blocking(handle, True)
    return handle


def reading(path: Path | str, folder: int | None = None) -> BinaryIO:
    """Return an ordinary file to read from, as ``open_file`` opens it."""
    return os.fdopen(open_file(path, os.O_RDONLY, folder=folder), "rb")


@contextmanager
def folder_below(root: Path, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Give a descriptor of the folder ``root/names[0]/names[1]/...``.

    Args:
        root: where links are followed up to.
        names: of the folders, each in the one before.
        make: make those that are not there.

    Raises:
        OSError: there is no such folder, or one on the way is a link; it names that.
    """
    if make:
        root.mkdir(parents=True, exist_ok=True)
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=handle)
            inner = _inner(name, handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def files_below(handle: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the ordinary files of ``entries_below``."""
    return ((path, about) for path, about in entries_below(handle) if stat.S_ISREG(about.st_mode))


def entries_below(handle: int, depth: int = MOST_DEPTH) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files and folders below an open folder: the path of each from there, and what the disk says of it.

    What cannot be read, or lies deeper than ``depth`` folders, is passed over.
    """
    try:
        with os.scandir(handle) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        with suppress(FileNotFoundError):  # it went meanwhile
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode):
                yield entry.name, about
            if stat.S_ISDIR(about.st_mode) and depth:
                yield from _entries_in(entry.name, handle, depth - 1)


def _entries_in(name: str, folder: int, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    try:
        inner = _inner(name, folder)
    except OSError:
        return
    try:
        for path, about in entries_below(inner, depth):
            yield f"{name}/{path}", about
    finally:
        os.close(inner)


def remove_tree(root: Path, names: Sequence[str]) -> None:
    """Remove the folder ``root/names[0]/names[1]/...`` with all that is in it, and nothing that a link leads to.

    Raises:
        OSError: something stays; where the folder itself, or one on the way to it, is a link, all does.
    """
    with folder_below(root, names[:-1]) as folder:
        try:
            shutil.rmtree(names[-1], dir_fd=folder)
        except RecursionError:
            raise OSError(errno.ENAMETOOLONG, "holds too many folders within folders", str(root / names[-1])) from None


def link_in(folder: Path) -> Path | None:
    """Return ``folder`` where it is a link, else a link in it; None where there is neither."""
    if folder.is_symlink():
        return folder
    try:
        with os.scandir(folder) as entries:
            return next((folder / entry.name for entry in entries if entry.is_symlink()), None)
    except OSError:
        return None


def _inner(name: str, folder: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        raise _told(error, name, folder) from None


def _told(error: OSError, path: Path | str, folder: int | None) -> OSError:
    """Return ``error``, in plain words where a link is the reason: systems tell that by several numbers."""
    with suppress(OSError):
        if stat.S_ISLNK(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode):
            return OSError(errno.ELOOP, "is a symbolic link, and none is followed here", str(path))
    return error
