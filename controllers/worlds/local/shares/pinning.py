"""Keeping each node on its own cores.

The kernel weighs two groups against each other only on a core that both want. Trials of a node
smaller than the machine would spread over idle cores and split their node's quota evenly, whatever
their weights: measured 47/53 for 25/75 on two cores, 25/75 on one.
"""

import contextlib
import math
import os
from collections.abc import Iterable

from controllers.worlds.local.processes import proctree


class Cores:
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
    while fresh := {thread for pid in proctree.tree(root) for thread in proctree.threads(pid)} - done:
        for thread in fresh:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.sched_setaffinity(thread, cores)
        done |= fresh
