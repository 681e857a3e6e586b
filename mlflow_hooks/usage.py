"""CPU seconds of this process and its children."""

import os
import time
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_LOOK_EVERY_S: Final = 1.0


class CpuMeter:
    """Reads the CPU seconds of this process, its ended children and, on Linux, its living ones.

    Living children are looked at once a second, so their part may lag by that much; the reading
    never falls.
    """

    def __init__(self) -> None:
        self._children = 0.0
        self._look_at = 0.0

    def seconds(self) -> float:
        """Return the CPU seconds used since the process began."""
        times = os.times()
        ended = times.children_user + times.children_system
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            self._children = max(self._children, ended + sum(_of_process(child) for child in _children(os.getpid())))
        # A child that has ended since the look counts in both terms, so they must not be added.
        return times.user + times.system + max(ended, self._children)


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
