"""A machine made of namespaces: its own mounts, network, processes and name, on this kernel."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.commands import ClusterError, run
from tests.cluster.processes import identity, is_alive, pid_in_namespace_of, wait_until

REPOSITORY: Final = Path(__file__).parents[2]
LOG_SHOWN: Final = 2_000
"""Characters of a log that an error shows."""
NAMESPACES: Final = ("--mount", "--net", "--uts", "--ipc", "--pid")
# Starts a program in the background and tells its process id; the shell itself is gone at once.
IN_BACKGROUND: Final = 'log=$1; shift; setsid "$@" >>"$log" 2>&1 </dev/null & echo $!'


@dataclass(frozen=True)
class Machine:
    """One machine. All that is known of it is in its folder, so that any process can take it over.

    Attributes:
        name: its host name.
        folder: where its private files are kept.
        logs: where each of its components writes NAME-COMPONENT.log.
        cpu: the only core that it sees, or None for all.
    """

    name: str
    folder: Path
    logs: Path
    cpu: int | None = None

    def boot(self) -> None:
        """Start its first process and wait until its file tree stands."""
        for needed in (self._components, self.logs):
            needed.mkdir(parents=True, exist_ok=True)
        for stale in (self.folder / "ready", self.folder / "init", *self._components.iterdir()):
            stale.unlink(missing_ok=True)
        self._start_init()
        wait_until((self.folder / "ready").exists, f"{self.name} boots (see {self.logs})", 20)

    def _start_init(self) -> None:
        """Start the first process in a session of its own; it writes down by itself who it is."""
        seen = [] if self.cpu is None else [str(self.cpu)]
        init = [sys.executable, "-m", "tests.cluster.machine_init", str(self.folder), self.name, *seen]
        command = ["setsid", "--fork", "unshare", *NAMESPACES, "--fork", "--kill-child", *init]
        with (self.logs / f"{self.name}-init.log").open("ab") as log:
            subprocess.run(command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)

    @property
    def is_running(self) -> bool:
        """Whether its first process lives."""
        return self._init is not None

    @property
    def init(self) -> int:
        """The process id of its first process, as the host sees it.

        Raises:
            ClusterError: it is not running.
        """
        if self._init is None:
            message = f"machine {self.name} is not running"
            raise ClusterError(message)
        return self._init

    def lose(self) -> None:
        """End all its processes at once and without warning, like a power cut."""
        if self._init is not None:
            first = self._init
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: not Path(f"/proc/{first}").exists(), f"{self.name} is gone", 20)

    def run(self, *arguments: str | Path, seconds: float = 120) -> str:
        """Run a program in the machine to its end and return what it wrote."""
        return run(*self._enter(), *arguments, seconds=seconds)

    def start(self, component: str, command: Sequence[str | Path], **environment: str) -> None:
        """Start a program that stays, under a name by which it can be found again.

        Raises:
            ClusterError: it runs already.
        """
        if self.is_component_running(component):
            message = f"{component} of {self.name} runs already"
            raise ClusterError(message)
        log = self.log(component)
        settings = [f"{name}={value}" for name, value in environment.items()]
        told = run(*self._enter(), "sh", "-c", IN_BACKGROUND, "sh", log, "env", *settings, *command)
        pid = pid_in_namespace_of(self.init, int(told))
        (self._components / component).write_text(identity(pid) if pid else "")

    def wait_for(self, component: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until a component that was started is ready.

        Raises:
            ClusterError: it has ended, or is not ready within these seconds; with the end of its log.
        """
        with contextlib.suppress(ClusterError):
            wait_until(lambda: ready() or not self.is_component_running(component), component, seconds, interval=0.2)
        if not ready():
            how = f"is not ready after {seconds:g} s" if self.is_component_running(component) else "has ended"
            log = self.log(component).read_text(errors="replace")
            message = f"{component} of {self.name} {how}:\n{log[-LOG_SHOWN:]}"
            raise ClusterError(message)

    def log(self, component: str) -> Path:
        """Where a component writes its log."""
        return self.logs / f"{self.name}-{component}.log"

    def kill(self, component: str, signal_number: int = signal.SIGKILL, seconds: float = 30) -> None:
        """Signal a component and wait until it is gone; nothing happens where it is not running."""
        file = self._components / component
        pid = is_alive(file)
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_number)
        wait_until(lambda: is_alive(file) is None, f"{component} of {self.name} ends", seconds)

    def is_component_running(self, component: str) -> bool:
        """Whether a component lives."""
        return is_alive(self._components / component) is not None

    @property
    def components(self) -> dict[str, bool]:
        """Every component started since boot, and whether it lives."""
        return {file.name: is_alive(file) is not None for file in sorted(self._components.glob("*"))}

    @property
    def _components(self) -> Path:
        return self.folder / "components"

    @property
    def _init(self) -> int | None:
        return is_alive(self.folder / "init")

    def _enter(self) -> list[str]:
        return ["nsenter", "--target", str(self.init), *NAMESPACES, "--"]
