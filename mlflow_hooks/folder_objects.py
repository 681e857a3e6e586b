"""A folder that is used as a store of objects: ``file:///mnt/shared/prefix``.

For machines that share a disk and should not train on it, and to try out what a bucket would do.
"""

import fcntl
import hashlib
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.objects import ObjectInfo, StaleVersionError, StoreError, Version
from mlflow_hooks.state_folder import sync

SCHEME: Final = "file://"
_LOCK: Final = ".lock"
_BESIDE: Final = ".writing-"


class FolderObjects:
    """The objects below a folder, one file each. A lock lets one writer at a time replace a version.

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
                data = (self._root / key).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None
            return data, _version(data)

    def write(self, key: str, data: bytes, instead_of: Version | None) -> Version:
        """Write an object instead of a version of it."""
        path = self._root / key
        with _telling():
            path.parent.mkdir(parents=True, exist_ok=True)
            with (path.parent / _LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                there = self.read(key)
                if (there[1] if there else None) != instead_of:
                    message = f"{key} was changed meanwhile"
                    raise StaleVersionError(message)
                with _beside(path) as beside:
                    beside.write_bytes(data)
        return _version(data)

    def upload(self, key: str, path: Path) -> None:
        """Copy a file there, whole or not at all."""
        kept = self._root / key
        with _telling():
            kept.parent.mkdir(parents=True, exist_ok=True)
            with _beside(kept) as beside:
                shutil.copyfile(path, beside)

    def download(self, key: str, path: Path) -> None:
        """Copy an object to a file."""
        with _telling():
            shutil.copyfile(self._root / key, path)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects, and folders that are empty then."""
        for key in keys:
            path = self._root / key
            with _telling():
                path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder == self._root:
                    break
                with suppress(OSError):
                    if not any(_objects(folder)):
                        (folder / _LOCK).unlink(missing_ok=True)
                    folder.rmdir()

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with ``prefix``."""
        with _telling():
            for path in _objects(self._root / prefix.rpartition("/")[0]):
                key = path.relative_to(self._root).as_posix()
                if key.startswith(prefix):
                    stat = path.stat()
                    yield ObjectInfo(key, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC))


def _objects(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((_LOCK, _BESIDE)))


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(str(error)) from error


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Give a file to write that takes the place of ``path`` at the end."""
    beside = path.with_name(f"{_BESIDE}{uuid.uuid4().hex}")
    try:
        yield beside
        sync(beside)
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def _version(data: bytes) -> Version:
    return {"sha256": hashlib.sha256(data).hexdigest()}
