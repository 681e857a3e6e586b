"""What an attempt said last: of a Python program that failed, its exception."""

from pathlib import Path
from typing import Final

from controllers.core import after_attempt
from mlflow_hooks.no_links import reading

_TAIL: Final = 4096
"""Bytes of a log that are read."""
_OURS: Final = "mlflow_hooks: "
_MOST_LINE: Final = 300
_MOST_LINES: Final = 5


def last_line(log: Path) -> str:
    """Return the last line of ``log`` that says something, empty where none does."""
    return after_attempt.last_line(_tail(log))


def last_lines(log: Path, most: int) -> list[str]:
    """Return up to ``most`` last lines of ``log`` that a program of the user's has printed, the newest last."""
    lines = [line for line in _tail(log).splitlines() if line.strip() and not line.startswith(_OURS)]
    return lines[-most:]


def printed_last(name: str, log: Path) -> list[str]:
    """Return in lines for people what the trial ``name`` printed last; none where it printed nothing."""
    lines = last_lines(log, _MOST_LINES)
    told = [f"{name} printed last (all of it is in {log}):", *(f"  {line[:_MOST_LINE]}" for line in lines)]
    return told if lines else []


def _tail(log: Path) -> str:
    try:
        with reading(log) as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
