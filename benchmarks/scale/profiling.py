"""A profile of the controller by py-spy, where that is installed and allowed."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, Self

_RATE: Final = "50"


class ProfilerError(Exception):
    """A profile was asked for that cannot be taken. The message says what to do."""


class Profiler:
    """A context manager: writes which code held the interpreter to ``target`` (if any), in py-spy's raw form."""

    def __init__(self, pid: int, target: Path | None) -> None:
        self._pid = pid
        self._target = target
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self._target is not None:
            beside = Path(sys.executable).with_name("py-spy")
            program = str(beside) if beside.exists() else shutil.which("py-spy")
            if program is None:
                message = "--profile needs py-spy: pip install py-spy"
                raise ProfilerError(message)
            command = [program, "record", "--gil", "--rate", _RATE, "--format", "raw", "--pid", str(self._pid)]
            self._process = subprocess.Popen([*command, "--output", str(self._target)], stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.send_signal(2)  # then it writes what it has
            self._process.wait(timeout=30)
