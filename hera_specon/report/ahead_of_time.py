"""Imports what pages need while a sweep still runs: its user need not wait for that at the end."""

import importlib
import threading
from typing import Final

_AFTER_S: Final = 3.0
"""Seconds after which nothing else is busy with its own start."""
_SLOW: Final = ("plotly.graph_objects", "scipy.stats")


def import_soon() -> threading.Timer:
    """Import it on a thread of its own in some seconds."""
    timer = threading.Timer(_AFTER_S, lambda: [importlib.import_module(name) for name in _SLOW])
    timer.daemon = True
    timer.start()
    return timer
