"""Whose state folder is used: one that others own or can write would have us run their programs.

As git does with repositories: such a folder is refused by name, unless the user allowed it once. A folder that root
owns is as good as one's own. Under sudo, so is one of the user who called it. A folder that its owner's own group can
write, as with umask 002 on Debian and Fedora, is written by nobody else.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from controllers.core.errors import SpeconError
from controllers.worlds.local.jobs import write_whole
from mlflow_hooks.no_links import reading

_ROOT: Final = 0
_ALLOWED: Final = Path("hera-specon", "trusted-folders")
"""A file of the user's configuration with a folder on each line."""
OWN_MODE: Final = 0o755
"""Of folders that we make, whatever the umask: others may read reports there, and write nothing."""
_MOST_BYTES: Final = 2**20
"""Of that file."""


class UntrustedFolderError(SpeconError):
    """A folder with runs belongs to somebody else, or others can write to it."""


def check_trusted(folder: Path) -> None:
    """Refuse a folder with runs, or the folder of one, that somebody else may have prepared.

    It and the folders right in it are looked at. One that is not there yet is nobody's.

    Raises:
        UntrustedFolderError: says whose it is, and what to do.
    """
    for path in (folder, *_folders_in(folder)):
        why = _why_not(path)
        if why and not _is_allowed(path):
            message = (
                f"{path.resolve()} {why}. What a folder with runs holds is run with your rights. If you trust all who "
                f"can write there, allow it once: specon trust {folder.resolve()}"
            )
            raise UntrustedFolderError(message)


def make_private(folder: Path) -> None:
    """Make a folder, with those above it, that nobody but its owner can write to, whatever the umask."""
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            path.mkdir(OWN_MODE, exist_ok=True)


def trust(folder: Path) -> Path:
    """Allow a folder, and all below it, for good; return the file that keeps that.

    Raises:
        OSError: it cannot be written.
    """
    file = _allowed_file()
    if file is None:
        message = "there is no home folder to keep that in: set XDG_CONFIG_HOME or HOME"
        raise UntrustedFolderError(message)
    kept = _allowed()
    if folder.resolve() not in kept:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(file, "".join(f"{path}\n" for path in (*kept, folder.resolve())).encode())
    return file


def _folders_in(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if entry.is_dir())


def _why_not(path: Path) -> str:
    """Return why a folder is not trusted, in words that follow its name; empty where it is, or is not there."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return ""
    if about.st_uid not in _own_ids():
        return f"belongs to {_user(about.st_uid) or 'user'} ({about.st_uid}), and not to you"
    others = about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and not _is_private(about))
    if not others:
        return ""
    return f"can be written to by others (mode {stat.S_IMODE(about.st_mode):o}); chmod -R go-w takes that away"


def _own_ids() -> frozenset[int]:
    """Return the users whose folders are as good as one's own."""
    me = os.geteuid()
    caller = os.environ.get("SUDO_UID", "") if me == _ROOT else ""
    return frozenset({me, _ROOT, *([int(caller)] if caller.isascii() and caller.isdecimal() else ())})


def _is_private(about: os.stat_result) -> bool:
    """Return whether the group of a folder is its owner alone: named after them or root's, with no other member."""
    owner = _user(about.st_uid)
    try:
        group = grp.getgrgid(about.st_gid)
    except KeyError:
        return False
    return (about.st_gid == _ROOT or group.gr_name == owner) and not {*group.gr_mem} - {owner, _user(_ROOT)}


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return ""


def _is_allowed(path: Path) -> bool:
    return any(path.resolve().is_relative_to(allowed) for allowed in _allowed())


def _allowed() -> tuple[Path, ...]:
    """Return the folders that the user has allowed; none where somebody else may have written that file."""
    file = _allowed_file()
    if file is None or _why_not(file) or _why_not(file.parent):
        return ()
    try:
        with reading(file) as kept:
            lines = kept.read(_MOST_BYTES).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ()
    return tuple(Path(line) for line in lines if line.startswith("/"))


def _allowed_file() -> Path | None:
    given = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        return (Path(given) if given.startswith("/") else Path.home() / ".config") / _ALLOWED
    except RuntimeError:
        return None
