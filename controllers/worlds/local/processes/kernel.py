"""What Linux offers for processes to end with their parent, and Python doesn't."""

import ctypes
import os
import signal
from typing import Final

_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
_SET_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def signal_when_parent_dies(number: signal.Signals) -> None:
    """Let this process get a signal when the thread that forked it ends."""
    _prctl(_SET_DEATH_SIGNAL, number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent ends, as the first process of a container is."""
    _prctl(_SET_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
