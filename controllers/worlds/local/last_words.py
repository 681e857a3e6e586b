"""What an attempt said last: of a Python program that failed, its exception."""

from pathlib import Path
from typing import Final

_TAIL: Final = 4096
"""Bytes of a log that are read."""


def last_line(log: Path) -> str:
    """Return the last line of ``log`` that says something, empty where none does."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _TAIL))
        lines = file.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
