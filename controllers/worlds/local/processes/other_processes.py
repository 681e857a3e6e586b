"""Processes of systems without ``/proc``, such as macOS, as psutil and ``ps`` tell of them.

Three promises of Linux cannot be kept there:

- Nobody adopts orphans. Those of an attempt are found by its session, and by their numbers where they were seen before
  their parents ended. One that founds a session of its own, and whose parent ends before anybody has looked, is lost.
- No signal comes when a parent dies. Sockets close then, and their readers see it a moment later.
- The CPU time of a process that lives for less than the time between two looks counts nowhere.
"""

import math
import os
import re
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from mlflow_hooks.other_system import start_time

RUNS_FORKED: Final[bool] = False
"""See ``linux_processes``. Frameworks of macOS abort a process that was forked and uses them before it calls exec."""
_GONE: Final = frozenset({psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD})
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh"})
_ASKING_S: Final = 5.0
_LOOK_HOLDS: Final = 10.0
"""How many times as long as it took a look at all processes is used."""
_MASK_HOLDS_S: Final = 0.1
"""Seconds for which an answer of ``ps`` is used: it is a child too, and a look at each child's end would not stop."""
_masks: Final[dict[int, tuple[float, int | None]]] = {}


def tree(root: int) -> list[int]:
    """Return ``root`` and every descendant of it, parents first; empty if it is gone."""
    families = _look.families()
    members = [root] if any(root in pids for pids in families.values()) else []
    for pid in members:
        members.extend(child for child in families.get(pid, ()) if child not in members)
    return members


def children(pid: int) -> list[int]:
    """Return the children of a process, ended ones that it has not waited for included."""
    return list(_look.families().get(pid, ()))


def own_children() -> list[int]:
    """Return none: this process knows those that it has started, and no others become its own."""
    return []


class _Look:
    """A look at all processes of the machine; it takes at most a tenth of the time of code that looks all the time."""

    def __init__(self) -> None:
        self._until = -math.inf
        self._families: Mapping[int, list[int]] = {}

    def families(self) -> Mapping[int, list[int]]:
        """Return the children of each process."""
        began = time.monotonic()
        if began > self._until:
            families: defaultdict[int, list[int]] = defaultdict(list)
            for process in psutil.process_iter(["ppid"]):
                families[process.info["ppid"]].append(process.pid)
            self._families, now = families, time.monotonic()
            self._until = now + _LOOK_HOLDS * (now - began)
        return self._families


_look: Final = _Look()


def strays(leader: int) -> list[int]:
    """Return the processes of the session that ``leader`` has founded, orphans among them."""
    return [pid for pid in psutil.pids() if session(pid) == leader]


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds that these processes used, and where the system tells, their ended children."""
    return sum(sum(_cpu_times(pid)) for pid in pids)


def cpu_parts(pids: Iterable[int]) -> dict[tuple[int, int], float]:
    """Return the CPU seconds of a tree of processes in parts that never fall, each under a name of its own.

    Each process counts for itself: macOS does not add what a child has used to its parent.
    """
    return {(pid, began): sum(_cpu_times(pid)[:2]) for pid in pids if (began := start_time(pid)) is not None}


def _cpu_times(pid: int) -> tuple[float, ...]:
    """Return the seconds of user and system, and the same of ended children; nothing if the process is gone."""
    with suppress(psutil.Error, ValueError):
        times = psutil.Process(pid).cpu_times()
        return times.user, times.system, times.children_user, times.children_system
    return ()


def waiting_seconds(pids: Iterable[int]) -> float:  # noqa: ARG001 - Linux needs it
    """Return 0: nobody counts for how long threads wait for a core."""
    return 0.0


def session(pid: int) -> int | None:
    """Return the session that the process belongs to, None if it is gone."""
    with suppress(OSError):
        return os.getsid(pid)
    return None


def alive(pid: int) -> bool:
    """Return whether the process runs: it is there and no zombie."""
    try:
        return psutil.Process(pid).status() not in _GONE
    except psutil.AccessDenied:
        return True
    except (psutil.Error, ValueError):
        return False


def catches(pid: int, number: signal.Signals) -> bool:
    """Return whether the process has a handler for a signal: it can save before it ends, or tell others.

    ``ps`` knows it. Where it does not, any program but a shell is taken to have one.
    """
    now = time.monotonic()
    at, mask = _masks.get(pid, (-math.inf, None))
    if now > at + _MASK_HOLDS_S:
        told = _told_by(["ps", "-o", "sigcatch=", "-p", str(pid)])
        mask = int(told, 16) if re.fullmatch(r"[0-9a-fA-F]+", told) else None
        _masks[pid] = time.monotonic(), mask
    if mask is None:
        return alive(pid) and program(pid) not in _SHELLS
    return bool(mask >> (number - 1) & 1)


def _told_by(asking: list[str]) -> str:
    """Return what a command of the system prints, nothing where there is none or it fails."""
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(asking, capture_output=True, text=True, timeout=_ASKING_S, check=False)
        return "" if done.returncode else done.stdout.strip()
    return ""


def number_inside(pid: int) -> int:
    """Return the number by which the process knows itself, which is the same here."""
    return pid


def command(pid: int) -> tuple[str, ...]:
    """Return the words that the process was started with, none if it is gone."""
    with suppress(psutil.Error, ValueError):
        return tuple(psutil.Process(pid).cmdline())
    return ()


def program(pid: int) -> str:
    """Return the file name of the program that the process runs, such as ``bash``; empty if it is gone or not ours."""
    with suppress(psutil.Error, ValueError):
        return Path(psutil.Process(pid).exe()).name
    return ""


def open_files(pid: int) -> list[Path]:
    """Return the files that a process has open, none if it is gone or not ours."""
    with suppress(psutil.Error, ValueError):
        return [Path(file.path) for file in psutil.Process(pid).open_files()]
    return []


def here() -> tuple[str, str]:
    """Return what tells this machine since its start from any other; all its pids are of one namespace."""
    boot = _told_by(["sysctl", "-n", "kern.bootsessionuuid"])
    return boot or f"{os.uname().nodename} {psutil.boot_time():.0f}", "-"


def adopt_orphans() -> None:
    """Do nothing: see above."""


def signal_when_parent_dies(number: signal.Signals) -> None:
    """Do nothing: see above."""


_codes: Final[dict[int, int]] = {}


def has_ended(child: int) -> bool:
    """Return whether a child of this process has ended; it stays to be waited for."""
    return child in _codes or not alive(child)


def exit_code(child: int) -> int | None:
    """Return how a child has ended, as a shell gives it, None while it lives.

    A look cannot leave it to be waited for, as on Linux: its number may be another's from now on.
    """
    if child not in _codes:
        try:
            pid, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == 0:
            return None
        code = os.waitstatus_to_exitcode(status)
        _codes[child] = code if code >= 0 else 128 - code
    return _codes[child]


def bury(child: int) -> None:
    """Forget a child that has ended, and wait for it where nobody has asked for its exit code."""
    if _codes.pop(child, None) is None:
        os.waitpid(child, 0)
