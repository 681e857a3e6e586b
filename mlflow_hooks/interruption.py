"""How an attempt ends early: asked by SIGTERM, or because a newer attempt owns the trial."""

import atexit
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

from mlflow_hooks.contract import ENV_TRIAL_FOLDER, EXIT_MIGRATE, EXIT_PEERS_LOST
from mlflow_hooks.state_folder import report, write_whole

LATELY_S: Final = 0.1
OWNER: Final = "owner"
"""The file in a trial's folder that names the attempt which owns it."""
_FLUSH_S: Final = 1.0
_MESSAGE: Final = Path("/dev/termination-log")
_left_beside: list[tuple[threading.Thread, int]] = []


class MigrationExit(SystemExit):
    """Ends an attempt that goes on elsewhere or that a newer attempt has replaced: exit code 75."""

    def __init__(self) -> None:
        super().__init__(EXIT_MIGRATE)


class PeersLostExit(SystemExit):
    """Ends a worker whose gang has lost another one: exit code 76."""

    def __init__(self) -> None:
        super().__init__(EXIT_PEERS_LOST)


class Ownership:
    """The claim of one attempt on the state folder, by a token in the file ``OWNER``."""

    def __init__(self, folder: Path, token: str) -> None:
        self._path = folder / OWNER
        self._token = token
        self._claimed = False
        self._before: str | None = None
        self._seen: tuple[int, int] | None = None
        self._asked_at = -math.inf
        self.lost = False

    def claim(self) -> None:
        """Take the folder over from whichever attempt had it, unless that is done.

        Raises:
            OSError: the disk does not let it; call again later. Until then the folder counts as held, unless yet
                another attempt takes it.
        """
        if self._claimed or not self.held():
            return
        try:
            write_whole(self._path, self._token)
        except OSError:
            # On a full disk, what is there can mostly still be written over.
            self._path.write_text(self._token)
        self._claimed = True

    def held(self) -> bool:
        """Return whether the folder is still ours; once lost it stays lost.

        Asks the file system each time, but reads the file only when it was replaced.
        """
        if not self.lost:
            self.lost = not self._still_ours()
        return not self.lost

    def held_lately(self) -> bool:
        """Return what ``held`` returned within the last 0.1 s: for every step of a training."""
        now = time.monotonic()
        if now < self._asked_at + LATELY_S:
            return not self.lost
        self._asked_at = now
        return self.held()

    def _still_ours(self) -> bool:
        return self._is_there() if self._claimed else not self._taken_since()

    def _taken_since(self) -> bool:
        """Return whether the file has changed since we first looked, but for a claim of ours that a disk cut short."""
        try:
            now = self._path.read_text()
        except FileNotFoundError:
            now = ""
        except OSError:
            return False
        if self._before is None:
            self._before = now
        return now != self._before and not self._token.startswith(now)

    def _is_there(self) -> bool:
        try:
            stat = self._path.stat()
            mark = (stat.st_ino, stat.st_mtime_ns)
            if mark != self._seen and self._path.read_text() != self._token:
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True  # a file system that stutters is not another attempt
        self._seen = mark
        return True


class StopRequest:
    """Whether this process was asked to save and leave; a second SIGTERM changes nothing.

    Attributes:
        asked: the request came, and it is for us to leave.
        heard: the request came, for us or for another process.
        heard_at: when it came first, on the monotonic clock; infinite until then.
    """

    def __init__(self) -> None:
        self.asked = False
        self.heard = False
        self.heard_at = math.inf
        self._before: object = None

    def listen(self) -> None:
        """Take SIGTERM over. Only the main thread may: from another one, the trial cannot be asked to leave."""
        try:
            self._before = signal.signal(signal.SIGTERM, _Handler(self))
        except ValueError:
            report("trial() is not on the main thread, so this attempt cannot save when it is asked to leave")

    def listen_in(self) -> None:
        """Hear the request also where a script or framework has taken SIGTERM over since; the answer stays theirs."""
        theirs = signal.getsignal(signal.SIGTERM)
        if theirs is None or isinstance(theirs, int | _Handler):  # an int says that it ends the process, or nothing
            return
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _Handler(self, theirs))

    def ask(self) -> None:
        """Ask this process to leave as SIGTERM does, so that whatever has taken that over answers; from any thread."""
        if callable(signal.getsignal(signal.SIGTERM)):
            os.kill(os.getpid(), signal.SIGTERM)
        else:  # nothing has taken it over, and it would end the process or do nothing
            self.hear()
            self.asked = True

    def hear(self) -> None:
        """Note that the request came."""
        if not self.heard:
            self.heard, self.heard_at = True, time.monotonic()

    def seconds_left(self, grace_s: float, otherwise: float) -> float:
        """Return the seconds that are left of ``grace_s`` since the request; ``otherwise`` where there was none."""
        return max(0.0, self.heard_at + grace_s - time.monotonic()) if self.heard else otherwise

    def let_go(self) -> None:
        """Give SIGTERM back to the handler that had it."""
        if callable(self._before) or isinstance(self._before, signal.Handlers):
            signal.signal(signal.SIGTERM, self._before)


class _Handler:
    """What SIGTERM calls: it takes note, and passes on to the handler that had taken the signal over."""

    def __init__(self, request: StopRequest, theirs: Callable[[int, FrameType | None], object] | None = None) -> None:
        self._request = request
        self._theirs = theirs
        self._here = os.getpid()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        ours = os.getpid() == self._here
        if ours:
            self._request.hear()
        if self._theirs:
            self._theirs(number, frame)
        elif ours:
            self._request.asked = True
        else:
            # A child that was forked: a signal that ends it is meant for it, and it has no trial.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def leave_message(words: str) -> None:
    """Write why a container ends where Kubernetes looks for it; without that, it would show the last lines printed.

    On one machine there is no such place: a file of that name is that of a container around all trials.
    """
    if ENV_TRIAL_FOLDER not in os.environ and _MESSAGE.is_file():
        with suppress(OSError):
            _MESSAGE.write_text(words)


def leave_beside(sender: threading.Thread, code: int) -> None:
    """End this process with ``code`` after all else that is done at its exit, if ``sender`` still runs.

    Native libraries abort if the interpreter ends while a thread imports them, as MLflow imports many: that would
    count as a failure of the trial.
    """
    _left_beside.append((sender, code))


@atexit.register
def _end() -> None:
    codes = [code for thread, code in _left_beside if thread.is_alive()]
    if codes:
        # On a thread, since the one left behind may hold a stream.
        flushing = threading.Thread(target=_flush, daemon=True)
        flushing.start()
        flushing.join(_FLUSH_S)
        os._exit(codes[-1])


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
