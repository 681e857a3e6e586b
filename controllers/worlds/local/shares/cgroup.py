"""Shares enforced by the kernel: a group per run, in it one per node, in it one per trial."""

import contextlib
import math
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.linux_processes import threads
from controllers.worlds.local.shares.base import SharesError, SharesNameError, checked_cpu, checked_name

_REMOVAL_TIMEOUT_S: Final = 10.0
_BUSY_PER_PERIOD_US: Final = 250_000
_JOIN: Final = 'for f; do echo $$ > "$f" || exit 1; done'


class Groups(Protocol):
    """One version of the kernel's control groups. Paths are relative to the run's group."""

    @property
    def description(self) -> str:
        """One line for people."""
        ...

    def make_run(self) -> None:
        """Create the run's group."""
        ...

    def make_node(self, node: str, cpu: float) -> None:
        """Create a node's group with a quota of ``cpu`` cores."""
        ...

    def weigh_run(self, cpu: float) -> None:
        """Set the run's weight among whatever else this machine does to that of ``cpu`` cores."""
        ...

    def make_trial(self, path: Path) -> tuple[str, ...]:
        """Create a trial's group and return the files to join it by."""
        ...

    @property
    def limits_memory(self) -> bool:
        """Whether the memory of a group can be limited."""
        ...

    def limit_memory(self, path: Path, most: float) -> None:
        """Limit the memory of a trial's group to ``most`` bytes."""
        ...

    def weigh(self, path: Path, cpu: float, node_cpu: float) -> None:
        """Set a trial's weight."""
        ...

    def used(self, path: Path) -> float:
        """Return the CPU seconds used in a group and below it."""
        ...

    def memory(self, path: Path) -> float | None:
        """Return the bytes that a trial's group holds and that were not read from files; None where nobody counts."""
        ...

    def memory_kills(self, path: Path) -> int:
        """Return how many processes of a trial's group the kernel has killed for want of memory."""
        ...

    def pids(self, path: Path) -> set[int]:
        """Return the processes in a group and below it."""
        ...

    def kill(self, path: Path) -> None:
        """Send SIGKILL to every process in a group and below it."""
        ...

    def drop(self, path: Path) -> bool:
        """Remove a group and those below it; False while it is still in use."""
        ...


class CgroupShares:
    """``Shares`` by control groups.

    Raises:
        OSError: the groups may not be written here.
        SharesError: a process may not be put into them.
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._nodes: dict[str, tuple[float, frozenset[int]]] = {}
        self._trials: dict[str, str] = {}
        self._cores = CorePool(os.sched_getaffinity(0))
        self._remove(Path())
        try:
            groups.make_run()
            self._try_out()
        except (OSError, SharesError):
            self._remove(Path())
            raise

    @property
    def description(self) -> str:
        """One line for people."""
        return self._groups.description

    def add_node(self, node: str, cpu: float) -> None:
        """See ``Shares``."""
        if node in self._nodes:
            msg = f"node {node!r} is there already"
            raise SharesNameError(msg)
        self._groups.make_node(checked_name(node), checked_cpu(cpu))
        self._nodes[node] = cpu, self._cores.take(cpu)
        self._groups.weigh_run(sum(cpu for cpu, _ in self._nodes.values()))

    def add(self, key: str, node: str, cpu: float) -> tuple[str, ...]:
        """See ``Shares``."""
        if key in self._trials:
            msg = f"{key!r} has a share already"
            raise SharesNameError(msg)
        path, node_cpu, weight = Path(node, checked_name(key)), self._node(node)[0], checked_cpu(cpu)
        join = self._groups.make_trial(path)
        self._groups.weigh(path, weight, node_cpu)
        self._trials[key] = node
        return join

    @property
    def limits_memory(self) -> bool:
        """See ``Shares``."""
        return self._groups.limits_memory

    def limit_memory(self, key: str, most: float) -> None:
        """See ``Shares``."""
        if self._groups.limits_memory:
            self._groups.limit_memory(self._path(key), most)

    def adopt(self, key: str, pid: int) -> None:
        """See ``Shares``: keeps the tree on the cores of its node."""
        pin(pid, self._node(self._path(key).parts[0])[1])

    def resize(self, key: str, cpu: float) -> None:
        """See ``Shares``."""
        path = self._path(key)
        self._groups.weigh(path, checked_cpu(cpu), self._node(path.parts[0])[0])

    def used(self, key: str) -> float:
        """See ``Shares``."""
        return self._groups.used(self._path(key))

    def memory(self, key: str) -> float:
        """See ``Shares``."""
        path = self._path(key)
        counted = self._groups.memory(path)
        return proctree.memory(self._groups.pids(path)) if counted is None else counted

    def memory_kills(self, key: str) -> int:
        """See ``Shares``."""
        return self._groups.memory_kills(self._path(key))

    def node_used(self, node: str) -> float:
        """See ``Shares``."""
        self._node(node)
        return self._groups.used(Path(node))

    def kill(self, key: str) -> None:
        """See ``Shares``."""
        self._groups.kill(self._path(key))

    def remove(self, key: str) -> None:
        """See ``Shares``."""
        self._remove(self._path(key))
        del self._trials[key]

    def close(self) -> None:
        """See ``Shares``."""
        self._remove(Path())
        self._nodes.clear()
        self._trials.clear()

    def _node(self, node: str) -> tuple[float, frozenset[int]]:
        if node not in self._nodes:
            msg = f"unknown node {node!r}"
            raise SharesNameError(msg)
        return self._nodes[node]

    def _path(self, key: str) -> Path:
        if key not in self._trials:
            msg = f"{key!r} has no share"
            raise SharesNameError(msg)
        return Path(self._trials[key], key)

    def _remove(self, path: Path) -> None:
        deadline = time.monotonic() + _REMOVAL_TIMEOUT_S
        self._groups.kill(path)
        while not self._groups.drop(path):
            # A killed process keeps its group busy until the kernel has taken it down.
            if time.monotonic() > deadline:
                msg = f"processes {sorted(self._groups.pids(path))} in group {str(path)!r} do not end"
                raise SharesError(msg)
            time.sleep(0.01)
            self._groups.kill(path)

    def _try_out(self) -> None:
        """Put a process into a group, once, the way trials will be."""
        self._groups.make_node("probe", 1.0)
        join = self._groups.make_trial(Path("probe", "probe"))
        self._groups.weigh(Path("probe", "probe"), 1.0, 1.0)
        done = subprocess.run(["/bin/sh", "-c", _JOIN, "sh", *join], capture_output=True, text=True, check=False)
        self._remove(Path("probe"))
        if done.returncode:
            msg = f"no process may join {join}: {done.stderr.strip()}"
            raise SharesError(msg)


def period_us(cpu: float) -> int:
    """Return the period of a quota of ``cpu`` cores, in microseconds.

    Weights hold only while a node is not throttled, so a node runs for 250 ms per period where the
    kernel's limit of one second allows: with two trials at 10/90 on 0.45 cores the smaller got
    14.5 % at a period of 100 ms, 11.1 % at 400 ms, 10.7 % at one second.
    """
    return round(min(1_000_000, max(100_000, _BUSY_PER_PERIOD_US / cpu)))


def kill_all(pids_in: Groups, path: Path) -> None:
    """Send SIGKILL until every process has got one: from then on it cannot fork."""
    done: set[int] = set()
    while fresh := pids_in.pids(path) - done:
        proctree.send(fresh, signal.SIGKILL)
        done |= fresh


class CorePool:
    """The machine's cores, handed out to nodes: the least taken first."""

    def __init__(self, cores: Iterable[int]) -> None:
        self._taken = dict.fromkeys(sorted(cores), 0.0)

    def take(self, cpu: float) -> frozenset[int]:
        """Return as many cores as ``cpu`` needs, all of them if it needs more."""
        chosen = sorted(self._taken, key=lambda core: self._taken[core])[: math.ceil(cpu)]
        for core in chosen:
            self._taken[core] += cpu / len(chosen)
        return frozenset(chosen)


def pin(root: int, cores: frozenset[int]) -> None:
    """Keep a process tree on ``cores``; what it starts later inherits that."""
    done: set[int] = set()
    while fresh := {thread for pid in proctree.tree(root) for thread in threads(pid)} - done:
        for thread in fresh:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.sched_setaffinity(thread, cores)
        done |= fresh
