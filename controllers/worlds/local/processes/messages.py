"""What the launcher and its fork server tell each other: one JSON object per line."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from controllers.core.errors import SpeconError


class LaunchError(SpeconError):
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

    def packed(self) -> dict[str, Any]:
        """Return it as JSON's own types, with paths that hold in any folder."""
        paths = {"cwd": str(self.cwd.absolute()), "log": str(self.log.absolute())}
        return {"key": self.key, "command": self.command, "env": dict(self.env), "join": self.join, **paths}

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> "ProcessSpec":
        """Return what ``packed`` was made of."""
        tuples = {"command": tuple(packed["command"]), "join": tuple(packed["join"])}
        return cls(packed["key"], env=packed["env"], cwd=Path(packed["cwd"]), log=Path(packed["log"]), **tuples)


@dataclass(frozen=True, slots=True)
class Exit:
    """An attempt that ended. ``code`` is as a shell gives it: 128 + signal for a signal."""

    key: str
    pid: int
    code: int

    def packed(self) -> dict[str, Any]:
        """Return it as JSON's own types."""
        return asdict(self)


def line(message: Mapping[str, Any]) -> bytes:
    """Return a message as it travels."""
    return json.dumps(message).encode() + b"\n"


class Lines:
    """Bytes as they come in, cut into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the messages that ``data`` completes."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(text) for text in whole]
