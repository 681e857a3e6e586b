"""Versions of an object in a store that has none: each is an object of its own, and the highest number counts.

A store without conditional writes lets the last of several writers win, and may show half of what is being written. So
nothing is ever written over. A writer looks before it writes and once more afterwards: of two that wrote the same
number, the one whose name comes later wins, and the other finds that out, unless it had looked in between.
"""

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from mlflow_hooks.objects import ObjectInfo, StaleVersionError, Version

_KEPT: Final = 3
"""The newest version, and those that a reader may just have found in a list."""


class PlainStore(Protocol):
    """What is needed of a store. Every method raises ``StoreError`` where it is away."""

    def get(self, key: str) -> bytes | None:
        """Return a small object; None where there is none."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write a small object."""
        ...

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with ``prefix``."""
        ...


def read_numbered(store: PlainStore, key: str) -> tuple[bytes, Version] | None:
    """Return the newest whole version of an object; None where there is none."""
    for name in reversed(_names(store, key)):
        content = _checked(store.get(name))
        if content is not None:
            return content, {"name": name}
    return None


def write_numbered(store: PlainStore, key: str, data: bytes, instead_of: Version | None) -> Version:
    """Write a version of an object after the one that it is to replace; return it.

    Raises:
        StaleVersionError: there is a later one, before or afterwards.
    """
    found = read_numbered(store, key)
    newest = found[1]["name"] if found else ""
    if newest != (instead_of["name"] if instead_of else ""):
        raise StaleVersionError(_changed(key))
    number = max((_number(key, name) for name in _names(store, key)), default=0) + 1
    name = f"{key}/{number:08d}-{uuid.uuid4().hex}"
    store.put(name, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    names = _names(store, key)
    if names[-1:] != [name]:
        store.remove([name])
        raise StaleVersionError(_changed(key))
    store.remove(names[:-_KEPT])
    return {"name": name}


def _names(store: PlainStore, key: str) -> list[str]:
    names = [found.key for found in store.list(f"{key}/") if _number(key, found.key) > 0]
    return sorted(names, key=lambda name: (_number(key, name), name))


def _number(key: str, name: str) -> int:
    """Return the number of a version, 0 for what is none."""
    text = name.removeprefix(f"{key}/").partition("-")[0]
    return int(text) if text.isascii() and text.isdecimal() else 0


def _checked(content: bytes | None) -> bytes | None:
    """Return what was written; None for half of it."""
    told, _, data = (content or b"").partition(b"\n")
    return data if content is not None and told.decode("ascii", "replace") == hashlib.sha256(data).hexdigest() else None


def _changed(key: str) -> str:
    return f"{key} was changed meanwhile"
