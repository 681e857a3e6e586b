"""What systems without ``/proc``, such as macOS, tell of processes and of the network, asked through psutil.

Nobody counts there for how long a thread waits for a core.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import psutil

_PER_SECOND: Final = 100
_known: Final[dict[int, psutil.Process]] = {}


def start_time(pid: int) -> int | None:
    """Return when a process began, in hundredths of a second since 1970; None if it is gone.

    Within a process it stays the same, whatever happens to the clock. Where the clock was set by more than a second,
    two processes that began before and after that may tell different times.
    """
    try:
        process = _known.get(pid)
        if process is None or not process.is_running():
            _known.pop(pid, None)
            process = _known[pid] = psutil.Process(pid)
        return round(process.create_time() * _PER_SECOND)
    except (psutil.Error, ValueError):
        return None


def cpu_of_children(pid: int) -> float:
    """Return the CPU seconds of the living children of ``pid``, and of those below them."""
    spent = 0.0
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                times = child.cpu_times()
                spent += times.user + times.system
    return spent


def waits_of(pid: int) -> Iterator[tuple[str, int]]:  # noqa: ARG001 - Linux needs it
    """Yield nothing: see above."""
    yield from ()


def memory_left() -> int | None:
    """Return the bytes that this process can still take."""
    return int(psutil.virtual_memory().available)


def address_of(interface: str) -> str | None:
    """Return the IPv4 address of a network interface, None where it has none."""
    addresses = psutil.net_if_addrs().get(interface, [])
    return next((address.address for address in addresses if address.family is socket.AF_INET), None)
