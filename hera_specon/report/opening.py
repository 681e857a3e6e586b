"""Shows a report in the user's browser, where somebody can see it."""

import os
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path


def open_page(page: Path, env: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Open ``page`` as ``open_address`` does."""
    return open_address(page.resolve().as_uri(), env, platform)


def open_address(address: str, env: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Open ``address`` in a browser with a window of its own; return whether one was found.

    A browser that runs in the terminal would take that over, so none is opened where there is no desktop.
    """
    desktop = platform in {"darwin", "win32"} or env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")
    if not desktop:
        return False
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
