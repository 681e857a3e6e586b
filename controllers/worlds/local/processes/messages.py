"""What the launcher and its fork server tell each other: one JSON object per line."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from controllers.core.errors import SpeconError


class LaunchError(SpeconError):
    """An attempt could not be started: folder, log or group missing, or its key still running."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """An attempt to start.

    ``env`` is the whole environment. A ``fresh`` one gets a new process, whatever the server has imported. ``log`` gets
    stdout and stderr appended. The pid goes into each file of ``join`` before the attempt does any work. Hooks of the
    program say in ``folder``, under the name ``attempt``, which process trains; None where nobody would.
    """

    key: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    join: tuple[str, ...] = ()
    folder: Path | None = None
    attempt: str = ""
    fresh: bool = False

    def packed(self) -> dict[str, Any]:
        """Return it as JSON's own types, with paths that hold in any folder."""
        paths = {name: str(path.absolute()) for name, path in (("cwd", self.cwd), ("log", self.log))}
        folder = None if self.folder is None else str(self.folder.absolute())
        return {
            "key": self.key,
            "command": self.command,
            "env": dict(self.env),
            "join": self.join,
            "folder": folder,
            "attempt": self.attempt,
            "fresh": self.fresh,
            **paths,
        }

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> "ProcessSpec":
        """Return what ``packed`` was made of."""
        return cls(
            packed["key"],
            tuple(packed["command"]),
            packed["env"],
            cwd=Path(packed["cwd"]),
            log=Path(packed["log"]),
            join=tuple(packed["join"]),
            folder=None if packed["folder"] is None else Path(packed["folder"]),
            attempt=packed["attempt"],
            fresh=packed["fresh"],
        )


@dataclass(frozen=True, slots=True)
class Exit:
    """An attempt that ended. ``code`` is as a shell gives it: 128 + signal for a signal.

    ``asked`` tells that it was asked to leave before, by the controller or because that or the fork server had died.
    ``behind`` tells that the process which was asked then is not the first one, whose exit code this is.
    """

    key: str
    pid: int
    code: int
    asked: bool = field(default=False, compare=False)
    behind: bool = field(default=False, compare=False)

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
