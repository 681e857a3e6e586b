"""What this machine has left for trials: idle cores, and memory; a container may have a part of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import psutil

from controllers.worlds.local.shares.cgroup_files import Mounts, figures

_VMSTAT: Final = Path("/proc/vmstat")
_OUT_OF_MEMORY: Final = "oom_kill"
_NO_LIMIT: Final = 1 << 60
"""Version 1 writes a limit of so many bytes, or more, where there is none."""


@dataclass(frozen=True, slots=True)
class MemoryThere:
    """Bytes of memory that there are in all, and that new processes could take now."""

    total: float
    available: float


class Gauge(Protocol):
    """What a machine tells of itself now."""

    def idle_seconds(self) -> float:
        """Return for how many seconds cores have stood idle so far, each core counted."""
        ...

    def memory(self) -> MemoryThere:
        """Return what memory there is."""
        ...

    def memory_kills(self) -> int:
        """Return how many processes the kernel has killed for want of memory so far; 0 where it does not tell."""
        ...


class ThisMachine:
    """``Gauge`` of the machine that this runs on, and of the control groups that hold this process."""

    def __init__(self, mounts: Mounts | None = None) -> None:
        self._groups = list(_memory_groups(mounts or Mounts.here()))

    def idle_seconds(self) -> float:
        """See ``Gauge``."""
        times = psutil.cpu_times()
        return float(times.idle + getattr(times, "iowait", 0.0))

    def memory(self) -> MemoryThere:
        """See ``Gauge``."""
        machine = psutil.virtual_memory()
        least = MemoryThere(float(machine.total), float(machine.available))
        for group in self._groups:
            there = group.memory()
            if there is not None:
                least = MemoryThere(min(least.total, there.total), min(least.available, there.available))
        return least

    def memory_kills(self) -> int:
        """See ``Gauge``."""
        return figures(_VMSTAT).get(_OUT_OF_MEMORY, 0)


@dataclass(frozen=True, slots=True)
class _MemoryGroup:
    """A control group that may limit memory, and how its version calls what it tells."""

    folder: Path
    limit: str
    used: str
    reclaimable: str

    def memory(self) -> MemoryThere | None:
        """Return what the group leaves; None where it sets no limit."""
        try:
            limit = (self.folder / self.limit).read_text().strip()
            used = int((self.folder / self.used).read_text())
        except (OSError, ValueError):
            return None
        if not limit.isdecimal() or int(limit) >= _NO_LIMIT:
            return None
        # What was read from files goes as soon as somebody needs the room.
        held = used - figures(self.folder / "memory.stat").get(self.reclaimable, 0)
        return MemoryThere(float(limit), max(0.0, float(limit) - held))


def _memory_groups(mounts: Mounts) -> Iterator[_MemoryGroup]:
    for folder in mounts.v2():
        yield _MemoryGroup(folder, "memory.max", "memory.current", "inactive_file")
    own = mounts.v1("memory")
    for folder in (own, *own.parents) if own is not None else ():
        if (folder / "memory.limit_in_bytes").exists():
            yield _MemoryGroup(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
