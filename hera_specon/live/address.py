"""Where a page is found: a port of this machine's own address, and a token that nobody can guess."""

import secrets
import socket
from typing import Final
from urllib.parse import quote

LOOPBACK: Final = "127.0.0.1"
_WAITING: Final = 64
"""Connections that wait to be taken."""


def new_token() -> str:
    """Return a token of 256 random bits."""
    return secrets.token_urlsafe(32)


def listen(port: int = 0) -> socket.socket:
    """Return a socket that listens on this machine's own address, on any free port for 0.

    Raises:
        OSError: the port is taken, or this machine lets us listen nowhere.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen(_WAITING)
    except OSError:
        listening.close()
        raise
    return listening


def address(listening: socket.socket, token: str, sweep: str | None = None) -> str:
    """Return where a browser of this machine finds a sweep, or the list of all."""
    port = listening.getsockname()[1]
    return f"http://{LOOPBACK}:{port}/{token}/" + (f"sweeps/{quote(sweep, safe='')}" if sweep else "")
