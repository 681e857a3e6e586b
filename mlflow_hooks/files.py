"""Small files that are there whole or not at all, and words for whoever reads stderr."""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any


def report(message: str) -> None:
    """Tell the person who reads the trial's log; never fails."""
    try:
        print(f"mlflow_hooks: {message}", file=sys.stderr, flush=True)  # noqa: T201 - stderr is the place asked for
    except (OSError, ValueError):  # a closed stderr must not end the training
        return


def write_whole(path: Path, data: str) -> None:
    """Write ``data`` beside ``path`` and rename it there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    beside.write_text(data)
    beside.replace(path)


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in ``path``; empty where there is none or it is broken."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def sync(path: Path) -> None:
    """Have the disk keep ``path`` (a file or a folder) over a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
