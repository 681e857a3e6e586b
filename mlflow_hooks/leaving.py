"""How an attempt that leaves ends: with the exit code that says so, whatever its sending thread is in the midst of.

Native libraries abort where the interpreter ends while a thread imports them, as MLflow does many: that would count as
the trial's failure.
"""

import atexit
import os
import sys
import threading
from typing import Final

from mlflow_hooks.contract import EXIT_MIGRATE

_FLUSH_S: Final = 1.0
_left_beside: list[threading.Thread] = []


def leave_beside(sender: threading.Thread) -> None:
    """End this process with ``EXIT_MIGRATE`` after all else that is done at its exit, if ``sender`` still runs."""
    _left_beside.append(sender)


@atexit.register
def _end() -> None:
    if any(thread.is_alive() for thread in _left_beside):
        # On a thread, since the one left behind may hold a stream.
        flushing = threading.Thread(target=_flush, daemon=True)
        flushing.start()
        flushing.join(_FLUSH_S)
        os._exit(EXIT_MIGRATE)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
