"""What an attempt said last: of a Python program that failed, its exception."""

from pathlib import Path
from typing import Final

from controllers.core import failures

_TAIL: Final = 4096
"""Bytes of a log that are read."""


def last_line(log: Path) -> str:
    """Return the last line of ``log`` that says something, empty where none does."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _TAIL))
        return failures.last_line(file.read().decode(errors="replace"))
