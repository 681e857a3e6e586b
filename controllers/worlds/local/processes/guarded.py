"""Servers that never outlive their controller."""

from collections.abc import Mapping, Sequence
from pathlib import Path


class Guarded:
    """A running command whose whole process group ends when this process does, however that happens."""

    def poll(self) -> int | None:
        """Return the exit code as a shell gives it, None while it runs."""
        raise NotImplementedError

    def terminate(self) -> None:
        """Ask the group to end: SIGTERM, after the grace period SIGKILL. Does not wait."""
        raise NotImplementedError

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code; raises ``subprocess.TimeoutExpired``."""
        raise NotImplementedError


def start_guarded(
    command: Sequence[str], env: Mapping[str, str], log: Path, *, cwd: Path | None = None, grace_s: float = 5.0
) -> Guarded:
    """Start ``command`` with the whole environment ``env``, stdout and stderr appended to ``log``."""
    raise NotImplementedError
