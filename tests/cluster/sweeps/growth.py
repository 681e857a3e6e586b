"""How far a controller grows, and whether it lives on, while something is done to it."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.cluster.sweeps.controllers import ControllerProcess

_EVERY_S: Final = 0.5
_KIB_IN_MIB: Final = 1024


@dataclass
class Growth:
    """Watches a controller while its context lasts.

    Attributes:
        controller: which one; it runs.
        most_threads: threads that it had at most.
        silences: how often it did not say that it lives.
    """

    controller: ControllerProcess
    most_threads: int = 0
    silences: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._pid = self.controller.pid
        self._thread = threading.Thread(target=self._run, name="growth", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def same_process(self) -> bool:
        """Whether it is the process of the beginning, and lives."""
        return self.controller.running and self.controller.pid == self._pid

    @property
    def peak_mib(self) -> float:
        """The most memory that it ever had, in MiB."""
        return self._status("VmHWM") / _KIB_IN_MIB

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S) and self.controller.running:
            self.most_threads = max(self.most_threads, self._status("Threads"))
            self.silences += not self.controller.alive

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
