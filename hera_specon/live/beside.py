"""The page of a run beside it: an address at once, and a process that serves it once somebody opens that.

Until then it costs a socket and a thread that sleeps. What goes wrong with it is told, and the run goes on.
"""

import json
import os
import select
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Self

from controllers.core.own_program import own_command, own_environment
from hera_specon.live.address import address, listen, new_token

_CHILD: Final = "hera_specon.live.child"
_LOG: Final = "page.log"
_ENDS_WITHIN_S: Final = 12.0


class PageBeside:
    """Serves the page of a run from ``locate`` on; a context manager, at whose end the page ends too.

    Args:
        tell: takes a line for people where the page fails.
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._token = ""
        self._wake, self._woken = os.pipe()
        self._lock = threading.Lock()
        self._over = False
        self._child: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Do nothing: it begins when the run has a folder."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the page; who looks at it sees the end first, unless the run was cut short."""
        self.end_soon()
        if self._thread is not None:
            self._thread.join(_ENDS_WITHIN_S if kind is None else 0)
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                self._child.kill()
                self._child.wait()
        for end in (self._wake, self._woken):
            with suppress(OSError):
                os.close(end)

    def locate(self, folder: Path) -> str:
        """Listen for those who want to see the run in ``folder``, and return what to tell people: where that is.

        Where the run goes on after a question, the page is there already.
        """
        if self._thread is not None:
            return "The page goes on"
        try:
            listening = listen()
        except OSError as error:
            return f"no page: this machine lets none be served on 127.0.0.1 ({error.strerror or error})"
        self._token = new_token()
        self._thread = threading.Thread(target=self._attend, args=(listening, folder), name="page", daemon=True)
        self._thread.start()
        return f"Page: {address(listening, self._token, folder.name)} (while the run lasts; --no-page for none)"

    def end_soon(self) -> None:
        """Take note that the run is over: the page ends once those who look at it have seen that."""
        with self._lock:
            if self._over:
                return
            self._over = True
            if self._child is not None and self._child.stdin is not None:
                with suppress(OSError):
                    self._child.stdin.close()
        os.write(self._woken, b".")

    def _attend(self, listening: socket.socket, folder: Path) -> None:
        """Begin a process whenever somebody looks and there is none."""
        with listening, (folder / _LOG).open("ab") as log:
            while True:
                ready, _, _ = select.select([listening.fileno(), self._wake], [], [])
                if self._wake in ready:
                    return
                code = self._serve(listening, folder, log)
                if code is None:
                    return
                if code:
                    self._tell(f"the page of the run has failed (exit code {code}, {folder / _LOG}); the run goes on")
                    return

    def _serve(self, listening: socket.socket, folder: Path, log: IO[bytes]) -> int | None:
        """Serve until nobody looks any more, and return the exit code of what did; None where the run is over."""
        told = {"token": self._token, "state_dir": str(folder.parents[1].absolute()), "socket": listening.fileno()}
        with self._lock:
            if self._over:
                return None
            try:
                child = self._child = subprocess.Popen(
                    own_command(_CHILD),
                    env=own_environment(os.environ) | {"OMP_NUM_THREADS": "1"},
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    pass_fds=[listening.fileno()],
                    start_new_session=True,
                )
                if child.stdin is not None:
                    # Not on its command line, which everybody on this machine may read.
                    child.stdin.write(json.dumps(told).encode() + b"\n")
                    child.stdin.flush()
            except OSError as error:
                self._tell(f"the page of the run cannot be served ({error}); the run goes on")
                return None
        code = child.wait()
        with self._lock:
            if child.stdin is not None:
                with suppress(OSError):
                    child.stdin.close()
        return None if self._has_ended() else code

    def _has_ended(self) -> bool:
        """Whether the run is over by now: another thread says so."""
        with self._lock:
            return self._over
