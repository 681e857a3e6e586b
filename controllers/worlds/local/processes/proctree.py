"""A process and its descendants: what the system tells of them, and how they end with their parent.

Which system this is counts here and nowhere else: Linux tells it by files, elsewhere psutil knows most of it.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import psutil

from mlflow_hooks.system import HAS_PROC, start_time

if HAS_PROC:
    from controllers.worlds.local.processes.linux_processes import (
        RUNS_FORKED,
        adopt_orphans,
        alive,
        bury,
        catches,
        children,
        command,
        cpu_parts,
        cpu_seconds,
        exit_code,
        has_ended,
        here,
        number_inside,
        open_files,
        own_children,
        program,
        session,
        signal_when_parent_dies,
        strays,
        tree,
        waiting_seconds,
    )
else:
    from controllers.worlds.local.processes.other_processes import (
        RUNS_FORKED,
        adopt_orphans,
        alive,
        bury,
        catches,
        children,
        command,
        cpu_parts,
        cpu_seconds,
        exit_code,
        has_ended,
        here,
        number_inside,
        open_files,
        own_children,
        program,
        session,
        signal_when_parent_dies,
        strays,
        tree,
        waiting_seconds,
    )

__all__ = [
    "RUNS_FORKED",
    "CpuAccount",
    "adopt_orphans",
    "alive",
    "bury",
    "catches",
    "children",
    "command",
    "cpu_parts",
    "cpu_seconds",
    "exit_code",
    "has_ended",
    "here",
    "memory",
    "number_inside",
    "open_files",
    "own_children",
    "program",
    "send",
    "send_group",
    "session",
    "signal_tree",
    "signal_when_parent_dies",
    "start_time",
    "strays",
    "tells_waiting",
    "tree",
    "waiting_seconds",
]


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that is still there and ours."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


@cache
def tells_waiting() -> bool:
    """Return whether this system tells how long threads wait for a core."""
    return HAS_PROC and Path("/proc/self/schedstat").exists()


def memory(pids: Iterable[int]) -> float:
    """Return the bytes that these processes hold, without what others hold too, such as libraries."""
    held = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            told = psutil.Process(pid).memory_info()
            held += max(0, told.rss - getattr(told, "shared", 0))
    return held


def send_group(leader: int, number: signal.Signals) -> bool:
    """Send a signal to the process group of ``leader``; tell whether there was anyone."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def signal_tree(root: int, number: signal.Signals) -> None:
    """Send a signal once to each process of a tree and to all of its root's process group."""
    outside = [pid for pid in tree(root) if _group(pid) not in {root, None}]
    send_group(root, number)
    send(outside, number)


def _group(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


class CpuAccount:
    """The CPU seconds of a tree of processes, which stay when its processes are gone.

    Args:
        parts: tells what the processes that are there have used.
    """

    def __init__(self, parts: Callable[[Iterable[int]], Mapping[tuple[int, int], float]] = cpu_parts) -> None:
        self._parts = parts
        self._used: dict[tuple[int, int], float] = {}

    def seconds(self, pids: Iterable[int]) -> float:
        """Return the CPU seconds used so far by the tree, which has these processes now."""
        for who, used in self._parts(pids).items():
            self._used[who] = max(self._used.get(who, 0.0), used)
        return sum(self._used.values())
