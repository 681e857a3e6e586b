"""How a process of another tool comes into the control groups that bound its CPU."""

import json
import os
from pathlib import Path
from typing import Final

ENV_JOIN: Final = "JOIN"
"""The files to write a process id into, as a JSON list."""


def join_groups() -> None:
    """Put this process there; its children follow it."""
    for group in json.loads(os.environ.pop(ENV_JOIN, "[]")):
        Path(group).write_text(str(os.getpid()), encoding="ascii")
