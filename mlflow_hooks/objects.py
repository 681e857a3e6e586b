"""What a trial needs of a store of objects, such as a bucket, and what such a store may answer.

A checkpoint is objects that are written once, and one small object, the head, that names them. Only the head is ever
written again, always as "this instead of that": so of two attempts that write at once, one learns that it is not alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol


class StoreError(Exception):
    """A store did not do what it was asked; it may do so later."""


class StaleVersionError(StoreError):
    """An object is not, or no longer, the one that was to be replaced."""


Version = Mapping[str, str]
"""What one content of an object is known by, in the store's own words: an entity tag, a generation."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object of a store: its key, its size in bytes, and when it was written."""

    key: str
    size: int
    written_at: datetime


class ObjectStore(Protocol):
    """Objects by key, below the address that the store was opened at.

    Every method raises ``StoreError`` where the store is away, refuses, or has no room.
    """

    @property
    def conditional(self) -> bool:
        """Whether ``write`` lets one of several writers win, whenever they come."""
        ...

    def read(self, key: str) -> tuple[bytes, Version] | None:
        """Return a small object and its version; None where there is none."""
        ...

    def write(self, key: str, data: bytes, instead_of: Version | None) -> Version:
        """Write a small object instead of one version of it, or where there is none; return the new version.

        Raises:
            StaleVersionError: there is another one.
        """
        ...

    def upload(self, key: str, path: Path) -> None:
        """Write an object of any size from a file."""
        ...

    def download(self, key: str, path: Path) -> None:
        """Write what an object of any size holds to a file.

        Raises:
            StoreError: there is no such object, or the store is away.
        """
        ...

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects; one that is not there is none too many."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with ``prefix``, in no order."""
        ...
