"""Processes as Linux tells of them under ``/proc``, which is read here many times a second."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import psutil

RUNS_FORKED: Final[bool] = True
"""Whether a process may go on in a fork of another one, with all that this one has imported."""
_PROC: Final = Path("/proc")
_BOOT: Final = _PROC / "sys/kernel/random/boot_id"
_NAMESPACE: Final = _PROC / "self/ns/pid"
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_SESSION, _UTIME, _CSTIME = 3, 11, 14


def tree(root: int) -> list[int]:
    """Return ``root`` and every descendant of it, parents first; empty if it is gone."""
    members = [root] if _fields(root) else []
    for pid in members:
        members.extend(child for child in children(pid) if child not in members)
    return members


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds that these processes, and the ended children they waited for, used."""
    return sum(sum(map(int, fields[_UTIME : _CSTIME + 1])) for pid in pids if (fields := _fields(pid))) / (
        _TICKS_PER_SECOND
    )


def waiting_seconds(pids: Iterable[int]) -> float:
    """Return for how many seconds the living threads of these processes could have run but had no core."""
    return sum(int(line.split()[1]) for pid in pids for line in _of_threads(pid, "schedstat") if line) / 1e9


def threads(pid: int) -> list[int]:
    """Return the ids of the process's threads; empty if it is gone."""
    with contextlib.suppress(OSError):
        return [int(entry) for entry in os.listdir(_PROC / str(pid) / "task")]  # noqa: PTH208 - names only, often
    return []


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


def open_files(pid: int) -> list[Path]:
    """Return the files that a process has open, none if it is gone or not ours."""
    try:
        return list((_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return []


def strays(leader: int) -> list[int]:  # noqa: ARG001 - others need it
    """Return those of a session that no walk from a known parent finds: none, as orphans are adopted here."""
    return []


def here() -> tuple[str, str]:
    """Return what tells this machine since its start, and the namespace of its pids, from any other; else ``""``."""
    try:
        return _BOOT.read_text().strip(), os.readlink(_NAMESPACE)  # noqa: PTH115 - a link to no file
    except OSError:
        return "", ""


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


def own_children() -> list[int]:
    """Return the children of this process, orphans that it has adopted included."""
    return children(os.getpid())


def _told(pid: int, field: str) -> Iterator[list[str]]:
    """Yield the words of a field of the process's ``status``, none if it is gone."""
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith(f"{field}:"):
                yield line.split()[1:]


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


def cpu_parts(pids: Iterable[int]) -> dict[tuple[int, int], float]:
    """Return the CPU seconds of a tree of processes in parts that never fall, each under a name of its own.

    Here there is one part, as a process takes up what its ended children have used.
    """
    return {(0, 0): cpu_seconds(pids)}


def has_ended(child: int) -> bool:
    """Return whether a child of this process has ended; it stays to be waited for."""
    return exit_code(child) is not None


def exit_code(child: int) -> int | None:
    """Return how a child has ended, as a shell gives it, None while it lives; it stays to be waited for."""
    try:
        dead = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if dead is None:
        return None
    return dead.si_status if dead.si_code == os.CLD_EXITED else 128 + dead.si_status


def bury(child: int) -> None:
    """Wait for a child that has ended: from now on its number may be another's."""
    os.waitpid(child, 0)


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
