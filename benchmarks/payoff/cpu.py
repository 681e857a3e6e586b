"""Who had this machine's CPU while a run was made."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_STAT: Final = Path("/proc/stat")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class CpuReading:
    """CPU seconds since the machine started: busy, stolen by its host, and those of our ended child processes."""

    busy: float
    stolen: float
    ours: float

    @classmethod
    def now(cls) -> "CpuReading":
        """Read the kernel's counters."""
        user, nice, system, _idle, _iowait, irq, softirq, stolen = map(int, _STAT.read_text().split()[1:9])
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = user + nice + system + irq + softirq
        return cls(busy / _TICKS, stolen / _TICKS, children.ru_utime + children.ru_stime)

    def since(self, before: "CpuReading") -> "CpuReading":
        """Return what was used from ``before`` to this reading."""
        return CpuReading(self.busy - before.busy, self.stolen - before.stolen, self.ours - before.ours)

    @property
    def others(self) -> float:
        """Busy with what we did not start."""
        return max(0.0, self.busy - self.ours)
