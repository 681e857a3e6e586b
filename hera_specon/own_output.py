"""Keep standard output for ourselves while code of others runs in this process."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

_STDOUT, _STDERR = 1, 2


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Send what is printed meanwhile to standard error: by Python, by C libraries and by processes that are started."""
    kept = _kept_stdout()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            _flush()
            os.dup2(kept, _STDOUT)
            os.close(kept)


def _kept_stdout() -> int | None:
    """Let standard output go to standard error, and return the former; None where one of them is closed."""
    if sys.__stdout__ is None or sys.__stderr__ is None:
        return None  # its number may be that of any file by now
    _flush()
    try:
        kept = os.dup(_STDOUT)
    except OSError:
        return None
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:
        os.close(kept)
        return None
    return kept


def _flush() -> None:
    """Write what Python and the C library still hold back."""
    for stream in (sys.stdout, sys.__stdout__):
        # A stream may be closed, missing, or have lost its reader: none of that is news here.
        with suppress(AttributeError, ValueError, OSError):
            stream.flush()  # type: ignore[union-attr]  # None is an AttributeError
    ctypes.CDLL(None).fflush(None)
