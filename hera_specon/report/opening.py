"""Shows a report in the user's browser, where somebody can see it."""

import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Final

_LEADS_THERE: Final = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={0}"><a href="{0}">the page</a>
"""


def open_page(page: Path, env: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Open ``page`` in a browser with a window of its own; return whether one was found.

    A browser that runs in the terminal would take that over, so none is opened where there is no desktop.
    """
    if not _has_desktop(env, platform):
        return False
    try:
        return webbrowser.open(page.resolve().as_uri())
    except webbrowser.Error:
        return False


@contextmanager
def opened_unseen(
    secret: str, folder: Path, env: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> Iterator[None]:
    """Open the address ``secret``, which no other user of this machine may see, as ``open_page`` does.

    All users can read the command line of a browser. So it opens a file in ``folder`` that leads there, which only its
    owner can read, and which is gone at the end of the context.
    """
    if not _has_desktop(env, platform):
        yield
        return
    # mkstemp lets nobody else read it.
    handle, name = tempfile.mkstemp(".html", "open-", folder if folder.is_dir() else None)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_LEADS_THERE.format(escape(secret)))
        open_page(Path(name), env, platform)
        yield
    finally:
        Path(name).unlink(missing_ok=True)


def _has_desktop(env: Mapping[str, str], platform: str) -> bool:
    return bool(platform in {"darwin", "win32"} or env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))
