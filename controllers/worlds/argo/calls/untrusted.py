"""Reads what an API server answered. Any of it may be missing, of another type, or far too long."""

import base64
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from controllers.core.devices import MOST_KINDS, MOST_OF_A_KIND, Devices, is_device
from controllers.core.errors import SpeconError
from mlflow_hooks import foreign_json

MOST_TEXT = 4096
_MOST_QUANTITY = 64
_WIDEST = re.compile(rb"[\xf0-\xff]")


class PackedError(SpeconError):
    """A text cannot be unpacked."""


class TooManyPartsError(SpeconError):
    """A JSON text holds more values than this process will make objects of."""


def parsed(content: str | bytes, most: int) -> Any:  # noqa: ANN401 - whatever the JSON holds
    """Return the JSON in ``content``, which holds ``most`` values at most.

    A value that is written in two characters becomes an object of sixty bytes and more: the number of them counts, not
    the length of the text. Marks within strings count too.

    Raises:
        TooManyPartsError: It holds more.
        TooDeepError: It is nested too deeply, a ``ValueError``.
        ValueError: It is no JSON.
    """
    if parts_of(content) > most:
        message = f"it holds more than {most} values"
        raise TooManyPartsError(message)
    return foreign_json.parsed(content)


def parts_of(content: str | bytes) -> int:
    """Return how many values a JSON text holds at most."""
    if isinstance(content, bytes):
        return sum(content.count(mark) for mark in (b",", b"[", b"{"))
    return sum(content.count(mark) for mark in (",", "[", "{"))


def at(value: object, *path: str) -> Any:  # noqa: ANN401 - whatever the JSON holds
    """Return what is found in nested mappings along ``path``, None where there is nothing."""
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def text(value: object, *path: str, most: int = MOST_TEXT) -> str:
    """Return the string along ``path``; empty where there is none, or one longer than ``most`` characters."""
    item = at(value, *path)
    return item if isinstance(item, str) and len(item) <= most else ""


def strings(value: object, *path: str) -> dict[str, str]:
    """Return the mapping of strings along ``path``, without values that are no string or far too long."""
    item = at(value, *path)
    names = item if isinstance(item, Mapping) else {}
    return {name: text(names, name) for name in names if isinstance(name, str) and text(names, name)}


def mappings(value: object, *path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings in the list along ``path``."""
    items = at(value, *path)
    if isinstance(items, list):
        yield from (item for item in items if isinstance(item, Mapping))


def whole(value: object, *path: str) -> int | None:
    """Return the whole number along ``path``."""
    item = at(value, *path)
    return item if isinstance(item, int) and not isinstance(item, bool) else None


def epoch(value: object, *path: str) -> float | None:
    """Return the RFC 3339 time along ``path`` in Unix seconds."""
    written = text(value, *path, most=40)
    try:
        return datetime.fromisoformat(written).timestamp() if written else None
    except (ValueError, OverflowError):
        return None


def quantity(value: object, *path: str) -> float:
    """Return the quantity along ``path``, such as ``100m`` or ``16Mi``; 0 where there is none that makes sense."""
    written = at(value, *path)
    if not isinstance(written, str | int | float) or len(str(written)) > _MOST_QUANTITY:
        return 0.0
    try:
        amount = float(parse_quantity(written))
    except (ValueError, ArithmeticError):
        return 0.0
    return amount if math.isfinite(amount) and amount >= 0 else 0.0


def device_kinds(value: object, *path: str) -> set[str]:
    """Return the names of the devices among the resources along ``path``."""
    item = at(value, *path)
    names = item if isinstance(item, Mapping) else {}
    return {name for name in names if isinstance(name, str) and is_device(name)}


def devices_of(kinds: Iterable[str], amount: Callable[[str], float]) -> Devices:
    """Return the devices of ``kinds`` with the ``amount`` of each; only so many kinds, and no absurd amounts.

    Kubernetes takes whole numbers only, so a part of a device counts as a whole one.
    """
    kept = sorted(kinds)[:MOST_KINDS]
    return Devices.of({kind: math.ceil(min(amount(kind), MOST_OF_A_KIND)) for kind in kept})


def number(written: str) -> float | None:
    """Return the finite number, 0 or more, that an annotation holds; None where it holds none."""
    try:
        value = float(written)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def count(written: str) -> int:
    """Return the whole number that an annotation holds, 0 where it holds none."""
    value = number(written)
    return int(value) if value is not None and value < 2**31 else 0


def gunzipped(packed: object, most_bytes: int) -> str:
    """Return the text that ``packed`` holds as base64 of gzip.

    Raises:
        PackedError: it holds no such text, or one that takes more than ``most_bytes`` in memory.
    """
    try:
        content = base64.b64decode(packed, validate=True) if isinstance(packed, str) else b""
        # wbits of 16 more than the size of the window stands for gzip's header.
        unpacked = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(content, most_bytes + 1)
        fits = in_memory(unpacked) <= most_bytes
        decoded = unpacked.decode() if fits else ""
    except (ValueError, zlib.error) as error:
        raise PackedError(str(error)) from error
    if not fits:
        message = f"it unpacks to more than {most_bytes} bytes"
        raise PackedError(message)
    return decoded


def in_memory(content: bytes) -> int:
    """Return how many bytes a text in UTF-8 takes once it is read."""
    return len(content) * _width(content)


def _width(content: bytes) -> int:
    """Return how many bytes Python takes for each character of a text in UTF-8: one wide character makes all wide."""
    if content.isascii():
        return 1
    return 4 if _WIDEST.search(content) else 2


def gzipped(text_: str) -> bytes:
    """Return ``text_`` as gzip packs it."""
    machine = zlib.compressobj(level=6, wbits=zlib.MAX_WBITS | 16)
    return machine.compress(text_.encode()) + machine.flush()
