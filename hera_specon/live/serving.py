"""Serving a shelf of sweeps on this machine's own address."""

import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import uvicorn

from hera_specon.live.app import application
from hera_specon.live.lobby import MOST_STRANGERS, Connection, Lobby
from hera_specon.live.sweeps import Shelf

_MOST_AT_A_TIME: Final = 64
"""Connections of those who have shown the token that are served."""


class PageServer:
    """Serves ``shelf`` on a socket to those who know ``token``, until it is stopped or interrupted.

    Args:
        shelf: the sweeps.
        where: what the list of them is headed by.
        token: of the address.
        clock: seconds that never go back.
    """

    def __init__(self, shelf: Shelf, where: str, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen_at = clock()
        lobby = Lobby()
        # Its log of requests would hold the token.
        config = uvicorn.Config(
            application(shelf, where, token, self._see, lobby.leave),
            http=partial(Connection, lobby),  # type: ignore[arg-type] # all that uvicorn does with it is call it
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_level="warning",
            access_log=False,
            limit_concurrency=_MOST_AT_A_TIME + MOST_STRANGERS,
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        self._server = uvicorn.Server(config)

    @property
    def unseen_s(self) -> float:
        """Seconds since somebody looked last."""
        return self._clock() - self._seen_at

    def serve(self, listening: socket.socket) -> None:
        """Serve until ``stop``; Ctrl-C ends it too, where this is the main thread."""
        self._server.run(sockets=[listening])

    def stop(self) -> None:
        """Have ``serve`` return soon."""
        self._server.should_exit = True

    def _see(self) -> None:
        self._seen_at = self._clock()
