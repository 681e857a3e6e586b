"""What the system tells of processes, cores and the network, in the way of the system that this is.

``start_time`` is a number that, with its pid, names a process of this machine. The controllers ask for it here, too, so
that both sides mean the same.
"""

import os
from pathlib import Path
from typing import Final

HAS_PROC: Final = Path("/proc/self/stat").exists()
"""Whether this system tells of processes by files, as Linux does."""

if HAS_PROC:
    from mlflow_hooks.linux_system import address_of, cpu_of_children, memory_left, start_time, waits_of
else:
    from mlflow_hooks.other_system import address_of, cpu_of_children, memory_left, start_time, waits_of

__all__ = ["HAS_PROC", "address_of", "cores_here", "cpu_of_children", "memory_left", "start_time", "waits_of"]


def cores_here() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
