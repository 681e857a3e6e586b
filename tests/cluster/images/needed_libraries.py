"""Let a shared library no longer ask the dynamic loader for some of the libraries it was linked with.

What `patchelf --remove-needed` does, and two things more, without which the library would not load: the versions that
were required of the forgotten libraries go too, and their functions become weak, that is, may be missing. Nothing may
call them: there is nothing at their address. Only ELF files of 64 bits, little endian, are read here.
"""

import mmap
import re
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_DYNAMIC, _DYNAMIC_SYMBOLS, _VERSIONS_NEEDED, _VERSION_OF_SYMBOL = 6, 11, 0x6FFFFFFE, 0x6FFFFFFF
_TAG_NEEDED, _TAG_VERSIONS, _TAG_VERSION_COUNT = 1, 0x6FFFFFFE, 0x6FFFFFFF
_ANY_VERSION = 1
_WEAK = 2


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def forget_libraries(file: Path, libraries: re.Pattern[str], functions: re.Pattern[bytes]) -> list[str]:
    """Rewrite ``file`` in place so that it needs no library whose name (``libcufft.so.12``) matches ``libraries``.

    Args:
        file: the library to change.
        libraries: matches the names of those to forget.
        functions: matches the names of what those define.

    Returns:
        The libraries that it needed and now does not.
    """
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as image:
        sections = list(_sections(image))
        dynamic = next(section for section in sections if section.kind == _DYNAMIC)
        found = _forget_needs(image, dynamic, sections[dynamic.link].offset, libraries)
        if found:
            _forget_versions(image, sections, dynamic, libraries)
            _weaken(image, sections, functions)
        return found


def _sections(image: mmap.mmap) -> Iterator[_Section]:
    (start,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    for header in range(start, start + size * count, size):
        kind, _, _, offset, length, link = struct.unpack_from("<IQQQQI", image, header + 4)
        yield _Section(kind, offset, length, link)


def _text(image: mmap.mmap, at: int) -> str:
    return image[at : image.find(b"\0", at)].decode()


def _forget_needs(image: mmap.mmap, dynamic: _Section, names: int, libraries: re.Pattern[str]) -> list[str]:
    entries = list(struct.iter_unpack("<QQ", image[dynamic.offset : dynamic.offset + dynamic.size]))
    found = [at for tag, at in entries if tag == _TAG_NEEDED and libraries.fullmatch(_text(image, names + at))]
    kept = [entry for entry in entries if entry[0] != _TAG_NEEDED or entry[1] not in found]
    packed = b"".join(struct.pack("<QQ", *entry) for entry in kept)
    image[dynamic.offset : dynamic.offset + dynamic.size] = packed.ljust(dynamic.size, b"\0")
    return [_text(image, names + value) for value in found]


def _forget_versions(image: mmap.mmap, sections: list[_Section], dynamic: _Section, libraries: re.Pattern[str]) -> None:
    needed = next((section for section in sections if section.kind == _VERSIONS_NEEDED), None)
    symbols = next((section for section in sections if section.kind == _VERSION_OF_SYMBOL), None)
    if needed is None or symbols is None:
        return
    records = list(_chain(image, needed.offset, 12))
    names = sections[needed.link].offset
    gone = [at for at in records if libraries.fullmatch(_text(image, names + _field(image, at, 4)))]
    kept = [at for at in records if at not in gone]
    for at, following in pairwise([*kept, kept[-1]]):
        struct.pack_into("<I", image, at + 12, following - at)
    _point_to(image, dynamic, kept[0] - records[0], len(kept))
    _forget_versions_of_symbols(image, symbols, {number for at in gone for number in _numbers(image, at)})


def _chain(image: mmap.mmap, at: int, next_at: int) -> Iterator[int]:
    """Yield the places of linked records. Each says at ``next_at`` how far it is to the next one."""
    step = -1
    while step:
        yield at
        step = _field(image, at, next_at)
        at += step


def _field(image: mmap.mmap, at: int, offset: int) -> int:
    value: int = struct.unpack_from("<I", image, at + offset)[0]
    return value


def _numbers(image: mmap.mmap, record: int) -> Iterator[int]:
    """Yield the numbers by which symbols name the versions that one record requires of one library."""
    for version in _chain(image, record + _field(image, record, 8), 12):
        (number,) = struct.unpack_from("<H", image, version + 6)
        yield number


def _point_to(image: mmap.mmap, dynamic: _Section, skipped: int, count: int) -> None:
    for at in range(dynamic.offset, dynamic.offset + dynamic.size, 16):
        tag, value = struct.unpack_from("<QQ", image, at)
        if tag == _TAG_VERSIONS:
            struct.pack_into("<Q", image, at + 8, value + skipped)
        elif tag == _TAG_VERSION_COUNT:
            struct.pack_into("<Q", image, at + 8, count)


def _forget_versions_of_symbols(image: mmap.mmap, symbols: _Section, gone: Collection[int]) -> None:
    for at in range(symbols.offset, symbols.offset + symbols.size, 2):
        if struct.unpack_from("<H", image, at)[0] in gone:
            struct.pack_into("<H", image, at, _ANY_VERSION)


def _weaken(image: mmap.mmap, sections: list[_Section], functions: re.Pattern[bytes]) -> None:
    symbols = next(section for section in sections if section.kind == _DYNAMIC_SYMBOLS)
    names = sections[symbols.link].offset
    for at in range(symbols.offset, symbols.offset + symbols.size, 24):
        name, information, _, defined_in = struct.unpack_from("<IBBH", image, at)
        if not defined_in and functions.match(image, names + name):
            image[at + 4] = _WEAK << 4 | information & 0xF
