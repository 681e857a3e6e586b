"""What Linux tells of processes and of the network: files under ``/proc``, which cost little to read."""

import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_UTIME, _CSTIME, _STARTED = 11, 14, 19  # fields of proc(5), counted from the one behind the name
_MEMORY_GROUPS: Final = Path("/sys/fs/cgroup")
_SIOCGIFADDR: Final = 0x8915
_IFREQ: Final = "256s"


def start_time(pid: int) -> int | None:
    """Return when a process began, in clock ticks since boot; None if it is gone."""
    fields = _fields(pid)
    return int(fields[_STARTED]) if fields else None


def cpu_of_children(pid: int) -> float:
    """Return the CPU seconds of the living children of ``pid``, and of those below them."""
    return sum(_cpu_of(child) for child in _children(pid))


def waits_of(pid: int) -> Iterator[tuple[str, int]]:
    """Yield each thread of a process and of its children, with the nanoseconds for which it waited for a core."""
    try:
        threads = list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return
    for thread in threads:
        try:
            _, waited, *_ = (thread / "schedstat").read_text().split()
            yield str(thread), int(waited)
        except (OSError, ValueError):
            continue
    for child in _children(pid):
        yield from waits_of(child)


def address_of(interface: str) -> str | None:
    """Return the IPv4 address of a network interface, None where it has none; see netdevice(7)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = fcntl.ioctl(asking, _SIOCGIFADDR, struct.pack(_IFREQ, interface.encode()))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def memory_left() -> int | None:
    """Return the bytes that this process can still take, by the machine and by each of its control groups.

    None where the system does not tell.
    """
    return min((left for left in (_machine_memory(), *_group_memory()) if left is not None), default=None)


def _machine_memory() -> int | None:
    try:
        figures = dict(line.split(":") for line in (_PROC / "meminfo").read_text().splitlines())
        return int(figures["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _group_memory() -> Iterator[int]:
    """Yield what each control group of this process leaves, where one sets a limit: version 2, then version 1."""
    try:
        groups = [line.split(":", 2) for line in (_PROC / "self/cgroup").read_text().splitlines()]
    except OSError:
        return
    for _, kinds, path in (group for group in groups if len(group) == len(("number", "kinds", "path"))):
        if kinds == "":
            yield from _left_in(_MEMORY_GROUPS, path, ("memory.max", "memory.current", "inactive_file"))
        elif "memory" in kinds.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _left_in(_MEMORY_GROUPS / "memory", path, names)


def _left_in(mount: Path, path: str, names: tuple[str, str, str]) -> Iterator[int]:
    limit, used, reclaimable = names
    own = mount / path.lstrip("/")
    # In a container, the own group is mostly what is mounted, whatever its path is outside.
    for folder in {own, *own.parents, mount}:
        try:
            most, taken = int((folder / limit).read_text()), int((folder / used).read_text())
            figures = dict(line.split(maxsplit=1) for line in (folder / "memory.stat").read_text().splitlines())
            # What was read from files goes as soon as somebody needs the room.
            yield max(0, most - taken + int(figures.get(reclaimable, 0)))
        except (OSError, ValueError):  # no such group, or "max"
            continue


def _cpu_of(pid: int) -> float:
    own = sum(map(int, _fields(pid)[_UTIME : _CSTIME + 1]))
    return own / _TICKS + cpu_of_children(pid)


def _children(pid: int) -> list[int]:
    """Return the living children that the main thread of ``pid`` started (data loaders do it there)."""
    try:
        return [int(child) for child in (_PROC / str(pid) / "task" / str(pid) / "children").read_text().split()]
    except (OSError, ValueError):
        return []


def _fields(pid: int) -> list[str]:
    """Return what follows the name in the ``stat`` of a process; empty if it is gone."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
