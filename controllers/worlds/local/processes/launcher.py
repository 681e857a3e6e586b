"""The controller's side of the fork server."""

from collections.abc import Sequence
from pathlib import Path

from controllers.worlds.local.processes.messages import Exit, ProcessSpec


class Launcher:
    """Starts attempts out of a process that has the expensive imports done already.

    Args:
        preload: modules to import before the first fork; one that can't be imported is reported in ``log``.
        grace_s: seconds between SIGTERM and SIGKILL for attempts whose controller died.
        log: file for what the fork server itself says.
    """

    def __init__(self, preload: Sequence[str], grace_s: float, log: Path) -> None:
        raise NotImplementedError

    def start(self, spec: ProcessSpec) -> int:
        """Start an attempt and return its pid, which leads a session and process group of its own.

        The first call waits until the imports are done.

        Raises:
            LaunchError: it could not be started.
        """
        raise NotImplementedError

    def exits(self) -> list[Exit]:
        """Return the attempts that ended since the last call, without waiting."""
        raise NotImplementedError

    def terminate(self, key: str) -> None:
        """Send SIGTERM to every process of the attempt; nothing happens if it has ended."""
        raise NotImplementedError

    def kill(self, key: str) -> None:
        """Send SIGKILL to every process of the attempt; nothing happens if it has ended."""
        raise NotImplementedError

    def fileno(self) -> int:
        """Return a descriptor that is readable when ``exits`` has something; ask anew before each wait."""
        raise NotImplementedError

    def close(self, grace_s: float) -> None:
        """End every attempt (SIGTERM, after ``grace_s`` seconds SIGKILL) and the fork server. May be called twice."""
        raise NotImplementedError
