"""A process and its descendants: what Linux tells of them under ``/proc``, and how they end with their parent."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import psutil

_PROC: Final = Path("/proc")
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_SESSION, _UTIME, _CSTIME, _STARTED = 3, 11, 14, 19


def tree(root: int) -> list[int]:
    """Return ``root`` and every descendant of it, parents first; empty if it is gone."""
    found = [root] if _fields(root) else []
    for pid in found:
        found.extend(child for child in children(pid) if child not in found)
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds that these processes, and the ended children they waited for, used."""
    return sum(sum(map(int, fields[_UTIME : _CSTIME + 1])) for pid in pids if (fields := _fields(pid))) / (
        _TICKS_PER_SECOND
    )


def waiting_seconds(pids: Iterable[int]) -> float:
    """Return for how many seconds the living threads of these processes could have run but had no core."""
    return sum(int(line.split()[1]) for pid in pids for line in _of_threads(pid, "schedstat") if line) / 1e9


def memory(pids: Iterable[int]) -> float:
    """Return the bytes that these processes hold, without what others hold too, such as libraries."""
    held = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            told = psutil.Process(pid).memory_info()
            held += max(0, told.rss - getattr(told, "shared", 0))
    return held


def threads(pid: int) -> list[int]:
    """Return the ids of the process's threads; empty if it is gone."""
    with contextlib.suppress(OSError):
        return [int(entry) for entry in os.listdir(_PROC / str(pid) / "task")]  # noqa: PTH208 - names only, often
    return []


def started(pid: int) -> int | None:
    """Return when the process began, in clock ticks since boot: with the pid it names a process for good."""
    fields = _fields(pid)
    return int(fields[_STARTED]) if fields else None


def session(pid: int) -> int | None:
    """Return the session that the process belongs to, None if it is gone."""
    fields = _fields(pid)
    return int(fields[_SESSION]) if fields else None


def catches(pid: int, number: signal.Signals) -> bool:
    """Return whether the process has a handler for a signal: it can save before it ends, or tell others."""
    return any(int(words[0], 16) >> (number - 1) & 1 for words in _told(pid, "SigCgt"))


def number_inside(pid: int) -> int:
    """Return the number by which the process knows itself: in a container of its own it has another there."""
    return next((int(words[-1]) for words in _told(pid, "NSpid")), pid)


def command(pid: int) -> tuple[str, ...]:
    """Return the words that the process was started with, none if it is gone."""
    with contextlib.suppress(OSError):
        return tuple((_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1])
    return ()


def program(pid: int) -> str:
    """Return the file name of the program that the process runs, such as ``bash``; empty if it is gone or not ours."""
    with contextlib.suppress(OSError):
        return Path(os.readlink(_PROC / str(pid) / "exe")).name.removesuffix(" (deleted)")  # noqa: PTH115 - a link to no file
    return ""


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that is still there and ours."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


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


def alive(pid: int) -> bool:
    """Return whether the process runs: it is there and no zombie."""
    return _fields(pid)[:1] not in ([], ["Z"], ["X"])


def children(pid: int) -> list[int]:
    """Return the children of a process, ended ones that it has not waited for included."""
    if _kernel_tells_children():
        return [int(child) for line in _of_threads(pid, "children") for child in line.split()]
    with contextlib.suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children()]
    return []


def _told(pid: int, field: str) -> Iterator[list[str]]:
    """Yield the words of a field of the process's ``status``, none if it is gone."""
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith(f"{field}:"):
                yield line.split()[1:]


def _group(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


def _fields(pid: int) -> list[str]:
    """Return what follows the name in the process's ``stat``, zombies included; empty if it is gone."""
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return []


@cache
def _kernel_tells_children() -> bool:
    own = os.getpid()
    return (_PROC / str(own) / "task" / str(own) / "children").exists()


def _of_threads(pid: int, name: str) -> Iterator[str]:
    for thread in threads(pid):
        with contextlib.suppress(OSError):
            yield (_PROC / str(pid) / "task" / str(thread) / name).read_text()


_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
_SET_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def signal_when_parent_dies(number: signal.Signals) -> None:
    """Let this process get a signal when the thread that forked it ends."""
    _prctl(_SET_DEATH_SIGNAL, number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent ends, as the first process of a container is."""
    _prctl(_SET_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
