"""A command, watched from outside while it runs: its time, its memory, and who had the CPU."""

import math
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil

from benchmarks.payoff.cpu import CpuReading, SpeedProbe

_MARK: Final = "OWN_MACHINE_COMMAND"
_FIRST_LOOK_S: Final = 0.1
"""Some commands end before a second is over: looks come soon after each other at first."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What a command came to.

    ``began`` is in Unix seconds, ``seconds`` from its start to its exit. ``peak`` is the most memory that it held with
    all that it started, in bytes. ``others`` and ``stolen`` are the cores that others used meanwhile and that the
    machine's host did not give, on average; ``probe_s`` is what a fixed piece of work cost, in CPU seconds.
    """

    exit_code: int
    began: float
    seconds: float
    peak: int
    others: float
    stolen: float
    probe_s: float


def watched(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
    most_s: float = math.inf,
    every_s: float = 1.0,
) -> Watched:
    """Run ``command`` in ``folder`` to its end, with its output in ``log``, and leave nothing of it.

    All that it started is looked at each ``every_s`` seconds, at first more often. After ``most_s`` seconds it is
    killed.
    """
    mark = uuid.uuid4().hex
    before = CpuReading.now()
    with log.open("w") as out, SpeedProbe() as probe, Watch(mark, every_s) as watch:
        began = time.time()
        with subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            watch.session = process.pid
            try:
                code = process.wait(None if math.isinf(most_s) else most_s)
            except subprocess.TimeoutExpired:
                code = -signal.SIGKILL
            finally:
                process.kill()
        seconds = time.time() - began
    used = CpuReading.now().since(before)
    # The kernel adds up only what was waited for by its parent; not all that Ray starts is.
    others = max(0.0, used.busy - max(used.ours, watch.cpu_s)) / seconds
    return Watched(code, began, seconds, watch.peak, others, used.stolen / seconds, probe.seconds)


class Watch:
    """Looks each ``every_s`` seconds, while its context lasts, at all processes of a command.

    They are those with ``mark`` in their environment and those of its ``session``. Some leave the session, and some
    write their title over their environment. At the end of the context it kills those that are left.
    """

    def __init__(self, mark: str, every_s: float) -> None:
        self._mark, self._every_s = mark, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._cpu: dict[tuple[int, float], float] = {}
        self.session = 0
        self.peak = 0

    @property
    def cpu_s(self) -> float:
        """CPU seconds that the processes were seen to use: without each one's last moments."""
        return sum(self._cpu.values())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        while left := self._found():
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left)

    def _run(self) -> None:
        pause = min(_FIRST_LOOK_S, self._every_s)
        while not self._stop.wait(pause):
            self._look()
            pause = min(2 * pause, self._every_s)

    def _look(self) -> None:
        held = 0
        for process in self._found():
            with suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                self._cpu[process.pid, process.create_time()] = times.user + times.system
                held += process.memory_full_info().pss
        self.peak = max(self.peak, held)

    def _found(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                return False
            return os.getsid(process.pid) == self.session or process.environ().get(_MARK) == self._mark
        return False
