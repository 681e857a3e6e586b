"""Who had this machine's CPU while a run was made, and how fast it was: on shared hosts, that changes by the minute."""

import resource
import statistics
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import numpy as np
import psutil

_BUSY: Final = ("user", "nice", "system", "irq", "softirq")
_STOLEN: Final = ("steal",)
PROBE_EVERY_S: Final = 4.0
_ROUNDS: Final = 12
_SIZE: Final = 400
"""Rows and columns of a matrix: 640 kB, so that the caches count, too."""


@dataclass(frozen=True, slots=True)
class CpuReading:
    """CPU seconds since the machine started: busy, stolen by its host, and those of our ended child processes."""

    busy: float
    stolen: float
    ours: float

    @classmethod
    def now(cls) -> "CpuReading":
        """Read the kernel's counters."""
        times = psutil.cpu_times()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Each system counts some of these only.
        busy, stolen = (sum(getattr(times, name, 0.0) for name in names) for names in (_BUSY, _STOLEN))
        return cls(busy, stolen, children.ru_utime + children.ru_stime)

    def since(self, before: "CpuReading") -> "CpuReading":
        """Return what was used from ``before`` to this reading."""
        return CpuReading(self.busy - before.busy, self.stolen - before.stolen, self.ours - before.ours)

    @property
    def others(self) -> float:
        """Busy with what we did not start."""
        return max(0.0, self.busy - self.ours)


class SpeedProbe:
    """Measures, while its context lasts, what a fixed piece of work costs: half a percent of a core goes into that.

    The work is small matrices and Python, as a training's is.
    """

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def seconds(self) -> float:
        """CPU seconds that the work took on average over the context."""
        return statistics.fmean(self._costs)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        _work()  # The first time, memory and code are cold.
        while True:
            began = time.thread_time()
            _work()
            self._costs.append(time.thread_time() - began)
            if self._stop.wait(PROBE_EVERY_S):
                return


def _work() -> float:
    """Do the work, and return what it came to, so that none of it can be left out."""
    total = 0.0
    for number in range(_ROUNDS):
        matrix = np.full((_SIZE, _SIZE), 1.0 + number, dtype=np.float32)
        # Not a library's product of matrices: its threads would count elsewhere.
        total += float(np.einsum("ij,ij->", np.tanh(matrix), np.sqrt(matrix + matrix.T)))
        total += sum(k * k for k in range(8000))
    return total
