"""The CPU time of a training program: what it used, and what its threads waited for because others had the CPUs."""

import os
import time
from typing import Final

from mlflow_hooks.system import cpu_of_children, waits_of

_LOOK_EVERY_S: Final = 1.0


class CpuMeter:
    """Reads the CPU seconds of this process, its ended children and its living ones.

    Living children are looked at once a second, so their part may lag by that much; the reading
    never falls.
    """

    def __init__(self) -> None:
        self._children = 0.0
        self._look_at = 0.0

    def seconds(self) -> float:
        """Return the CPU seconds used since the process began."""
        times = os.times()
        ended = times.children_user + times.children_system
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            self._children = max(self._children, ended + cpu_of_children(os.getpid()))
        # A child that has ended since the look counts in both terms, so they must not be added.
        return times.user + times.system + max(ended, self._children)


_LOOKS: Final = 50.0
"""Looking at many threads takes time: at least so many times as long passes between two looks."""
_NANOSECONDS: Final = 1e-9


class WaitMeter:
    """Reads for how long the threads of this process and of its living children were ready to run and did not.

    Linux counts it for each thread (``schedstat`` in proc(5)), also while a control group has used up its quota. Nobody
    counts the time for which a process was stopped, and other systems count none.
    """

    def __init__(self) -> None:
        self._threads: dict[str, int] = {}
        self._ended = 0
        self._look_at = 0.0

    def seconds(self) -> float | None:
        """Return the seconds since the process began, those of all threads in sum; None where nothing counts them."""
        began = time.monotonic()
        if began >= self._look_at:
            threads = dict(waits_of(os.getpid()))
            # The number of a thread that ended may come again.
            self._ended += sum(waits for thread, waits in self._threads.items() if threads.get(thread, -1) < waits)
            self._threads = threads
            now = time.monotonic()
            self._look_at = now + _LOOKS * (now - began)
        return (self._ended + sum(self._threads.values())) * _NANOSECONDS if self._threads else None
