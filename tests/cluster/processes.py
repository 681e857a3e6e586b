"""Processes by id and start time, so that an id that was given again is never taken for the old process."""

import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.commands import ClusterError


def wait_until(condition: Callable[[], bool], what: str, seconds: float, interval: float = 0.05) -> None:
    """Poll until the condition holds.

    Raises:
        ClusterError: it did not within these seconds.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            message = f"waited {seconds:g} s in vain until: {what}"
            raise ClusterError(message)
        time.sleep(interval)


def start_time(pid: int) -> str | None:
    """When it started, in the kernel's ticks; None where it is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def identity(pid: int) -> str:
    """What to write down of a process, for `is_alive`."""
    return f"{pid} {start_time(pid)}"


def is_alive(file: Path) -> int | None:
    """The id of the process whose identity is in this file, or None if it is dead or was never written."""
    try:
        pid, _, started = file.read_text().partition(" ")
    except FileNotFoundError:
        return None
    return int(pid) if pid and start_time(int(pid)) == started else None


def pid_in_namespace_of(init: int, inner: int) -> int | None:
    """The id on the host of the process that `init`'s namespace calls `inner`."""
    namespace = Path(f"/proc/{init}/ns/pid").readlink()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            ids = next(line for line in status.read_text().splitlines() if line.startswith("NSpid:")).split()[1:]
            if ids[-1] == str(inner) and (status.parent / "ns/pid").readlink() == namespace:
                return int(ids[0])
        except (FileNotFoundError, ProcessLookupError, StopIteration):
            continue
    return None
