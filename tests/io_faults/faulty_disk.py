"""A disk that fails where a test says: at the k-th thing that is asked of it, or from the k-th on."""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

_CHANGES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Fault(StrEnum):
    """What goes wrong."""

    FULL = "ENOSPC"
    BROKEN = "EIO"
    SHORT = "short write, then ENOSPC"
    UNREADABLE = "EIO, also where files are read"

    @property
    def error(self) -> int:
        return errno.EIO if self in {Fault.BROKEN, Fault.UNREADABLE} else errno.ENOSPC


@dataclass(frozen=True)
class Spot:
    """Which thing asked of the disk fails, counted from 0; ``onwards`` has all that follow fail too."""

    fault: Fault
    number: int
    onwards: bool

    def __str__(self) -> str:
        return f"Spot(Fault.{self.fault.name}, {self.number}, onwards={self.onwards})"


@dataclass
class FaultyDisk:
    """What stands under ``root`` as a disk that fails at ``spot``; ``asked`` tells all that was asked of it."""

    root: Path
    spot: Spot | None = None
    reads: bool = False
    asked: list[str] = field(default_factory=list)
    _names: dict[int, Path] = field(default_factory=dict)

    def ask(self, what: str, path: Path, *, shortens: bool = False) -> bool:
        """Count a request, and fail it if it is its turn; return whether it is to be cut short instead."""
        number = len(self.asked)
        self.asked.append(f"{what} {path.relative_to(self.root)}")
        if self.spot is None or number < self.spot.number:
            return False
        short = self.spot.fault is Fault.SHORT and shortens
        if number > self.spot.number + short_follows(self.spot) and not self.spot.onwards:
            return False
        if short and number == self.spot.number:
            return True
        raise OSError(self.spot.fault.error, os.strerror(self.spot.fault.error), str(path))

    def holds(self, path: object) -> Path | None:
        """Return ``path`` if it stands on this disk."""
        if isinstance(path, int):
            return self._names.get(path)
        whole = Path(os.fsdecode(path)).absolute()  # type: ignore[arg-type]  # a path of any kind
        return whole if whole == self.root or self.root in whole.parents else None

    @contextmanager
    def mounted(self) -> Iterator["FaultyDisk"]:
        """Let all of this process see the disk so."""
        calls: dict[str, Any] = {
            "open": self._open_of(os.open),
            "close": self._close_of(os.close),
            "write": self._write_of(os.write),
            "pwrite": self._write_of(os.pwrite),
            **{name: self._named(name) for name in ("fsync", "rename", "replace", "mkdir", "truncate", "unlink")},
        }
        opened = self._file_of(io.open)
        with patch.multiple(os, **calls), patch.object(io, "open", opened), patch.object(builtins, "open", opened):
            yield self

    def _named(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(path: Any, *more: Any, **named: Any) -> Any:  # noqa: ANN401 - as of os
            # What is removed relative to an open folder is tidying, by shutil.
            if (ours := None if named.get("dir_fd") is not None else self.holds(path)) is not None:
                self.ask(name, ours)
                if name == "fsync":  # no test loses its power, and real disks take their time
                    return None
            return real(path, *more, **named)

        return call

    def _open_of(self, real: Callable[..., int]) -> Callable[..., int]:
        def call(path: Any, flags: int, *more: Any, **named: Any) -> int:  # noqa: ANN401 - as of os
            ours = None if named.get("dir_fd") is not None else self.holds(path)
            if ours is not None and (self.reads or flags & _CHANGES):
                self.ask("open", ours)
            handle = real(path, flags, *more, **named)
            if ours is not None:
                self._names[handle] = ours
            return handle

        return call

    def _close_of(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def call(handle: int) -> None:
            self._names.pop(handle, None)
            real(handle)

        return call

    def _write_of(self, real: Callable[..., int]) -> Callable[..., int]:
        def call(handle: int, data: bytes, *more: int) -> int:
            ours = self.holds(handle)
            if ours is not None and self.ask("write", ours, shortens=True):
                data = data[: len(data) // 2]
            return real(handle, data, *more)

        return call

    def _file_of(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(file: Any, mode: str = "r", buffering: int = -1, *more: Any, **named: Any) -> Any:  # noqa: ANN401 - as of io
            ours = self.holds(file)
            changes = bool(set(mode) & set("wax+"))
            if ours is None or not (self.reads or changes):
                return real(file, mode, buffering, *more, **named)
            if not isinstance(file, int):
                self.ask("open", ours)
            if not changes:
                return real(file, mode, buffering, *more, **named)
            raw = _Raw(file, mode.replace("b", "").replace("t", ""), self, ours)
            buffered = io.BufferedWriter(raw)
            if "b" in mode:
                return buffered
            encoding = named.get("encoding") or (more[0] if more else None) or "utf-8"
            return io.TextIOWrapper(buffered, encoding=encoding)

        return call


def short_follows(spot: Spot) -> int:
    """How many requests fail after the one at ``spot``: what a full disk cut short does not fit the next time."""
    return 1 if spot.fault is Fault.SHORT else 0


class _Raw(io.FileIO):
    """A file as the system sees it, whose writes may fail or be cut short."""

    def __init__(self, file: Any, mode: str, disk: FaultyDisk, path: Path) -> None:  # noqa: ANN401 - a path or a descriptor
        super().__init__(file, mode)
        self._disk, self._path = disk, path

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer
        view = memoryview(data).cast("B")
        if self._disk.ask("write", self._path, shortens=True):
            view = view[: len(view) // 2]
        return super().write(view) or 0


def every_spot(points: int, faults: tuple[Fault, ...] = (Fault.FULL, Fault.BROKEN, Fault.SHORT)) -> list[Spot]:
    """Return each point once by itself and once with all that follow, for each kind of fault."""
    return [Spot(fault, number, onwards) for fault in faults for onwards in (False, True) for number in range(points)]
