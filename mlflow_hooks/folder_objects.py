"""A folder that is used as a store of objects: ``file:///mnt/shared/prefix``.

For machines that share a disk and should not train on it, and to try out what a bucket would do.
"""

import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final
from urllib.parse import unquote, urlsplit

from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.no_links import files_below, folder_below, open_file, reading
from mlflow_hooks.objects import ObjectInfo, StaleVersionError, StoreError, Version

SCHEME: Final = "file://"
_LOCK: Final = ".lock"
_BESIDE: Final = ".writing-"
_AT_ONCE: Final = 2**20
"""Bytes that are copied at a time."""


class FolderObjects:
    """The objects below a folder, one file each. A lock lets one writer at a time replace a version.

    Others may write there, too: below that folder, no symbolic link is followed.

    Raises:
        BadEnvironmentError: the address names no folder of this machine.
    """

    conditional = True

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
            message = f"{address} names no folder of this machine; write it as file:///mnt/shared/prefix"
            raise BadEnvironmentError(message)
        self._root = Path(unquote(parts.path))

    def read(self, key: str) -> tuple[bytes, Version] | None:
        """Return an object and its version."""
        with _telling():
            try:
                with self._folder_of(key) as (folder, name):
                    return _read(folder, name)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, key: str, data: bytes, instead_of: Version | None) -> Version:
        """Write an object instead of a version of it."""
        with _telling(), self._folder_of(key, make=True) as (folder, name), _locked(folder):
            there = _read(folder, name)
            if (there[1] if there else None) != instead_of:
                message = f"{key} was changed meanwhile"
                raise StaleVersionError(message)
            with _beside(folder, name) as file:
                file.write(data)
        return _version(data)

    def upload(self, key: str, path: Path) -> None:
        """Copy a file there, whole or not at all."""
        with _telling(), path.open("rb") as given, self._folder_of(key, make=True) as (folder, name):
            _copy(given, _beside(folder, name))

    def download(self, key: str, path: Path) -> None:
        """Copy an object to a file."""
        with _telling(), self._folder_of(key) as (folder, name), reading(name, folder) as there:
            _copy(there, path.open("wb"))

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects, and folders that are empty then."""
        for key in keys:
            with _telling():
                try:
                    with self._folder_of(key) as (folder, name):
                        _remove(folder, name)
                except FileNotFoundError:
                    pass
            *folders, _ = _names(key)
            while folders:
                with suppress(OSError):
                    self._remove_empty(folders)
                folders.pop()

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with ``prefix``."""
        below = prefix.rpartition("/")[0]
        with _telling():
            try:
                with folder_below(self._root, _names(below)) as folder:
                    for path, about in _objects(folder):
                        key = f"{below}/{path}" if below else path
                        if key.startswith(prefix):
                            yield ObjectInfo(key, about.st_size, datetime.fromtimestamp(about.st_mtime, UTC))
            except (FileNotFoundError, NotADirectoryError):
                return

    @contextmanager
    def _folder_of(self, key: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Give the folder of an object as a descriptor, and the object's name there."""
        *folders, name = _names(key)
        with folder_below(self._root, folders, make=make) as folder:
            yield folder, name

    def _remove_empty(self, names: Sequence[str]) -> None:
        with folder_below(self._root, names) as folder:
            if not any(True for _ in _objects(folder)):
                _remove(folder, _LOCK)
        with folder_below(self._root, names[:-1]) as above:
            os.rmdir(names[-1], dir_fd=above)


def _names(key: str) -> Sequence[str]:
    """Return the names of the folders on the way to an object, and its own."""
    names = PurePosixPath(key).parts
    if key.startswith("/") or ".." in names:
        message = f"{key!r} is no name of an object below a folder"
        raise StoreError(message)
    return names


def _read(folder: int, name: str) -> tuple[bytes, Version] | None:
    try:
        with reading(name, folder) as file:
            data = file.read()
    except FileNotFoundError:
        return None
    return data, _version(data)


def _copy(given: BinaryIO, to: AbstractContextManager[BinaryIO]) -> None:
    with to as file:
        shutil.copyfileobj(given, file, _AT_ONCE)


def _remove(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _objects(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    found = files_below(folder)
    return ((path, about) for path, about in found if not path.rpartition("/")[2].startswith((_LOCK, _BESIDE)))


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(str(error)) from error


@contextmanager
def _locked(folder: int) -> Iterator[None]:
    """Keep other writers out of an open folder."""
    handle = open_file(_LOCK, os.O_WRONLY | os.O_CREAT, folder=folder)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _beside(folder: int, name: str) -> Iterator[BinaryIO]:
    """Give a file to write that takes the place of ``name`` in an open folder at the end."""
    beside = f"{_BESIDE}{uuid.uuid4().hex}"
    try:
        with os.fdopen(open_file(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder=folder), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise


def _version(data: bytes) -> Version:
    return {"sha256": hashlib.sha256(data).hexdigest()}
