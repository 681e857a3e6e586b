"""What every way of enforcing CPU shares offers, and what it refuses."""

import math
import re
from typing import Final, Protocol

from controllers.core.errors import SpeconError

_SAFE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_KERNEL_OWNED: Final = re.compile(r"(cgroup|cpu|cpuacct|cpuset|memory|io|pids)\.|tasks$|notify_on_release$")


class SharesError(SpeconError):
    """This machine cannot enforce CPU shares as asked."""


class SharesNameError(SharesError):
    """A run, node or trial is unknown, there already, or its name cannot name a group."""


class SharesValueError(SharesError):
    """A number of cores that is not finite and above zero."""


class Shares(Protocol):
    """CPU of this machine, given to nodes by quota and within a node to trials by weight.

    A node never gets more than its quota. What one of its trials leaves unused goes to the others.
    Numbers of CPU are cores. Calls with an unknown or taken name raise ``SharesNameError``.
    """

    @property
    def description(self) -> str:
        """One line for people: which way this is and what it cannot do."""
        ...

    def add_node(self, node: str, cpu: float) -> None:
        """Cut a node of ``cpu`` cores out of the machine."""
        ...

    def add(self, key: str, node: str, cpu: float) -> tuple[str, ...]:
        """Make room for a process tree on ``node`` with the weight of ``cpu`` cores.

        Returns:
            Files into which the pid of the tree's first process must be written before it does
            any work; empty where there are none. In either case call ``adopt`` next.
        """
        ...

    @property
    def limits_memory(self) -> bool:
        """Whether ``limit_memory`` does anything."""
        ...

    def limit_memory(self, key: str, most: float) -> None:
        """Let a process tree use ``most`` bytes of memory: the kernel kills a process where it would use more."""
        ...

    def adopt(self, key: str, pid: int) -> None:
        """Tell the pid of the first process of the tree, which leads a process group of its own."""
        ...

    def resize(self, key: str, cpu: float) -> None:
        """Change the weight to that of ``cpu`` cores from now on."""
        ...

    def used(self, key: str) -> float:
        """Return the CPU seconds that the whole process tree has used so far."""
        ...

    def memory(self, key: str) -> float:
        """Return the bytes of memory that the process tree holds now: what was read from files does not count."""
        ...

    def memory_kills(self, key: str) -> int:
        """Return how many of its processes the kernel has killed for want of memory; 0 where nobody counts them."""
        ...

    def node_used(self, node: str) -> float:
        """Return the CPU seconds used on ``node`` so far, by removed process trees too."""
        ...

    def kill(self, key: str) -> None:
        """Send SIGKILL to every process left of ``key``."""
        ...

    def remove(self, key: str) -> None:
        """Kill what is left of ``key`` and forget it."""
        ...

    def close(self) -> None:
        """Kill and remove everything of this run. May be called twice."""
        ...


def checked_name(name: str) -> str:
    """Return ``name`` if it may name a group.

    Raises:
        SharesNameError: it is empty, has unsafe characters, or could be taken for a kernel's file.
    """
    if not _SAFE.fullmatch(name) or _KERNEL_OWNED.match(name):
        msg = f"{name!r} cannot name a group of processes: use letters, digits, '_', '-' and '.'"
        raise SharesNameError(msg)
    return name


def checked_cpu(cpu: float) -> float:
    """Return ``cpu`` if it is a number of cores.

    Raises:
        SharesValueError: it is not finite or not above zero.
    """
    if not math.isfinite(cpu) or cpu <= 0:
        msg = f"a share must be a finite number of cores above zero, not {cpu!r}"
        raise SharesValueError(msg)
    return cpu
