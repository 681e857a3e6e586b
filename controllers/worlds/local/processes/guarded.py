"""Servers that never outlive their controller."""

import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from controllers.worlds.local.processes.launcher import Launcher
from controllers.worlds.local.processes.messages import ProcessSpec

_KEY: Final = "guarded"


class Guarded:
    """A running command that ends, with all its processes, when this process does, however that happens.

    Its parent is a fork server of its own, which sees this process's end.
    """

    def __init__(self, launcher: Launcher, spec: ProcessSpec, grace_s: float) -> None:
        self.command = spec.command
        self._launcher, self._grace_s = launcher, grace_s
        self._code: int | None = None
        self.pid = launcher.start(spec)

    def poll(self) -> int | None:
        """Return the exit code as a shell gives it, None while it runs."""
        if self._code is None and (exits := self._launcher.exits()):
            self._code = exits[0].code
            self._launcher.close(0.0)
        return self._code

    def terminate(self) -> None:
        """End all its processes: SIGTERM, after the grace period SIGKILL. Returns when they are gone."""
        self._launcher.close(self._grace_s)
        self.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if timeout is not None and left is not None and left <= 0:
                raise subprocess.TimeoutExpired(list(self.command), timeout)
            select.select([self._launcher], [], [], left)
        return code


def start_guarded(
    command: Sequence[str], env: Mapping[str, str], log: Path, *, cwd: Path | None = None, grace_s: float = 5.0
) -> Guarded:
    """Start ``command`` with the whole environment ``env``, stdout and stderr appended to ``log``.

    Raises:
        LaunchError: it could not be started.
    """
    launcher = Launcher((), grace_s, log)
    try:
        return Guarded(launcher, ProcessSpec(_KEY, tuple(command), env, cwd or Path.cwd(), log), grace_s)
    except BaseException:
        launcher.close(0.0)
        raise
