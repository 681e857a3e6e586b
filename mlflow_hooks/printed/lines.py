"""The one cleaning of what programs print: lines as a person sees them, without what steers a terminal. Pure."""

import re
from typing import Final

_MOVES: Final = r"\x1b\[[0-9;]*[ABEFGHf]"
"""Puts the cursor elsewhere: what follows overwrites, as after a carriage return."""
_STEERS: Final = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, and all else that a terminal does
    r"|\x1b\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[()][0-9A-Za-z]|\x1b[0-9=>@-Z\\^_c]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_PATTERNS: Final = (re.compile(_MOVES.encode()), re.compile(_STEERS.encode()))
ENDS: Final = re.compile(rb"[\r\n]")
"""Ends a line; what a progress bar overwrites is a line, too."""
_SEVERAL_ENDS: Final = re.compile(rb"[\r\n]+")


def clean(printed: bytes) -> bytes:
    """Return whole lines without what a terminal would not show."""
    moves, steers = _PATTERNS
    if b"\x1b" in printed:
        printed = moves.sub(b"\r", printed)
    return steers.sub(b"", printed)


def lines_of(printed: bytes) -> list[str]:
    """Return the lines of what was printed, cleaned."""
    return [line.decode(errors="replace") for line in _SEVERAL_ENDS.split(clean(printed))]
