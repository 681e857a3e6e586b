"""A program that runs as if nobody stood before it: it gets every signal, and what it prints goes where it went."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import IO, Final

from mlflow_hooks.interruption import StopRequest

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_AT_ONCE: Final = 2**16
_LOOK_S: Final = 0.5
"""What waits to be read is looked at so often, and so is whether the program runs."""
_SILENCE_S: Final = 0.5
"""After a program's end its streams are read until they are quiet so long: what it left behind may hold them open."""
_NOT_FOUND: Final = 127
_NOT_STARTED: Final = 126
_BY_SIGNAL: Final = 128

Take = Callable[[int, bytes], None]
"""Is given what came by a stream, 1 or 2, and now and then nothing."""


class ReadProgram:
    """Starts a program in a process group of its own, and is where SIGTERM arrives.

    So a signal to the group of this process reaches the program once, passed on.

    Attributes:
        stop: whether it was asked to leave.
    """

    def __init__(self) -> None:
        self.stop = StopRequest()
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        for number in _SIGNALS:
            signal.signal(number, self._pass_on)

    def run(self, command: Sequence[str], env: Mapping[str, str], take: Take) -> int:
        """Run ``command`` to its end, pass on what it prints, and return its exit code as a shell tells it."""
        try:
            self._child = subprocess.Popen(
                list(command),
                env=dict(env),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if _in_one_place() else subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            sys.stderr.write(f"{command[0]}: {error.strerror or error}\n")
            return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_STARTED
        for number in self._early:
            self._send(number)
        self._listen(self._child, take)
        code = self._child.wait()
        return _BY_SIGNAL - code if code < 0 else code

    def kill(self) -> None:
        """End the program at once."""
        self._send(signal.SIGKILL)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self.stop.hear()
        self._send(number) if self._child else self._early.append(number)

    def _send(self, number: int) -> None:
        if self._child and self._child.poll() is None:
            with suppress(OSError):
                os.killpg(self._child.pid, number)

    @staticmethod
    def _listen(child: "subprocess.Popen[bytes]", take: Take) -> None:
        """Pass on what ``child`` prints until it has ended, and what is left of it then."""
        with selectors.DefaultSelector() as streams:
            for number, pipe in ((1, child.stdout), (2, child.stderr)):
                if pipe is not None:
                    streams.register(pipe, selectors.EVENT_READ, number)
            quiet_at = time.monotonic() + _SILENCE_S
            while streams.get_map() and (child.poll() is None or time.monotonic() < quiet_at):
                ready = streams.select(_LOOK_S)
                for key, _ in ready:
                    stream: IO[bytes] = key.fileobj  # type: ignore[assignment]  # registered above
                    printed = os.read(stream.fileno(), _AT_ONCE)
                    if printed:
                        _write(key.data, printed)
                    else:
                        streams.unregister(stream)
                    take(key.data, printed)
                if ready or child.returncode is None:
                    quiet_at = time.monotonic() + _SILENCE_S
                if not ready:
                    take(1, b"")
            while child.poll() is None:  # it has closed its streams
                time.sleep(_LOOK_S)


def _in_one_place() -> bool:
    """Return whether both streams go to the same file, in which the lines are to keep their order."""
    try:
        return os.path.sameopenfile(1, 2)
    except OSError:  # one is closed
        return False


def _write(stream: int, printed: bytes) -> None:
    """Write all of it; where nobody takes it, the program is not to end for that."""
    with suppress(OSError):
        while printed:
            printed = printed[os.write(stream, printed) :]
