"""What the launcher and its fork server tell each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class LaunchError(RuntimeError):
    """An attempt could not be started: folder, log or group missing, or its key still running."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """An attempt to start.

    ``env`` is the whole environment. ``log`` gets stdout and stderr appended. The pid goes into
    each file of ``join`` before the attempt does any work.
    """

    key: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    join: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """An attempt that ended. ``code`` is as a shell gives it: 128 + signal for a signal."""

    key: str
    pid: int
    code: int
