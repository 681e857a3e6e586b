"""CPU seconds of this process and its children."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, its ended children and, on Linux, its living ones."""
    times = os.times()
    ended = times.user + times.system + times.children_user + times.children_system
    return ended + sum(_of_process(child) for child in _children(os.getpid()))


def _children(pid: int) -> list[int]:
    """Return the living children that the main thread of ``pid`` started (data loaders do it there)."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def _of_process(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    own = sum(int(ticks) for ticks in fields[11:15])  # utime stime cutime cstime of proc(5)
    return own / _TICKS + sum(_of_process(child) for child in _children(pid))
