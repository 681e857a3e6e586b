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
