"""The file that asks an attempt in a pod to leave, where the controller may send no signals.

Kubernetes shows an annotation of the pod there. Whatever stands in it was written by others.
"""

import os
import signal
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from mlflow_hooks.interruption import StopRequest
from mlflow_hooks.settings import AttemptSettings

LOOK_S: Final = 0.5
_MOST_BYTES: Final = 512
"""More than the name of any attempt has."""


class LeaveFile:
    """Looks at the file twice a second until it names this attempt, and then asks the process to leave.

    The looks are on a thread: a step may take minutes, and what a script or a framework does about SIGTERM begins at
    once. A thread is not inherited by forked children, so workers of a data loader are not asked. Of several processes
    that a launcher has started in the pod, the first looks, and the others learn it from that one.

    Args:
        settings: of the attempt; without a file in it nothing is done.
        request: what asks the process.
    """

    def __init__(self, settings: AttemptSettings, request: StopRequest) -> None:
        self._over = threading.Event()
        self._in_pod = bool(settings.leave_file)
        if settings.leave_file and settings.launched and os.environ.get("LOCAL_RANK", "0") == "0":
            looks = _Looks(Path(settings.leave_file), settings.attempt.encode(), request.ask, self._over)
            threading.Thread(target=looks.go_on, name="mlflow-hooks-leave", daemon=True).start()

    def close(self) -> None:
        """Look no more."""
        self._over.set()

    def end_launcher(self) -> None:
        """End with SIGTERM what this process was started by in its pod, such as a shell; nothing where that is itself.

        The pod ends as its first process does. A pipe into ``tee`` would make a success of an attempt that left.
        """
        first = os.getpgrp()  # Argo starts it as the leader of a group
        if self._in_pod and first not in {0, 1, os.getpid()}:
            with suppress(OSError):
                os.kill(first, signal.SIGTERM)


class _Looks:
    def __init__(self, path: Path, attempt: bytes, ask: Callable[[], None], over: threading.Event) -> None:
        self._path = path
        self._attempt = attempt
        self._ask = ask
        self._over = over
        self._seen: tuple[int, int, int] | None = None

    def go_on(self) -> None:
        """Look until the attempt is asked, or nobody is to look any more."""
        while not self._names_us():
            if self._over.wait(LOOK_S):
                return
        self._ask()

    def _names_us(self) -> bool:
        """Return whether the file names the attempt; it is read only where it was replaced."""
        try:
            there = self._path.stat()
            mark = (there.st_ino, there.st_mtime_ns, there.st_size)
            if mark == self._seen or not stat.S_ISREG(there.st_mode):
                return False
            with self._path.open("rb") as file:
                written = file.read(_MOST_BYTES)
        except OSError:
            return False
        self._seen = mark
        return written.strip() == self._attempt
