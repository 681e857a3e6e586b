"""Connections of those who have not shown the token: how many wait, and for how long.

Every user of this machine can connect, and send half a request or none. So there is a bound for each address and one
for all together, beyond which the oldest makes room, and a bound of time. One that has shown the token is free of it.
"""

import asyncio
from collections import Counter
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

TOKEN_WITHIN_S: Final = 10.0
"""Seconds from the beginning of a connection within which it must have shown the token, whatever it sends."""
MOST_OF_AN_ADDRESS: Final = 64
"""Connections without the token from one address."""
MOST_STRANGERS: Final = 128
"""Connections without the token in all."""


class Lobby:
    """The connections that have not shown the token, the oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], Connection] = {}

    def enter(self, who: tuple[str, int], connection: "Connection") -> None:
        """Let one wait; where there are too many, the oldest of the address that has most of them goes."""
        self._waiting[who] = connection
        ((crowd, most),) = Counter(address for address, _ in self._waiting).most_common(1)
        if most > MOST_OF_AN_ADDRESS or len(self._waiting) > MOST_STRANGERS:
            oldest = next(other for other in self._waiting if other[0] == crowd)
            self._waiting.pop(oldest).send_away()

    def leave(self, who: tuple[str, int]) -> None:
        """Take note that one has shown the token, or is gone."""
        if (connection := self._waiting.pop(who, None)) is not None:
            connection.waits_no_more()


class Connection(H11Protocol):
    """One connection, which is sent away unless it shows the token in time.

    Args:
        lobby: where it waits until then.
        given: what uvicorn gives its own.
    """

    def __init__(self, lobby: Lobby, **given: Any) -> None:  # noqa: ANN401 - as uvicorn calls it
        super().__init__(**given)
        self._lobby = lobby
        self._who = ("", 0)
        self._ends: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Begin to wait."""
        super().connection_made(transport)
        self._who = self.client or self._who
        self._ends = self.loop.call_later(TOKEN_WITHIN_S, self.send_away)
        self._lobby.enter(self._who, self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._lobby.leave(self._who)
        super().connection_lost(exc)

    def send_away(self) -> None:
        """Close it, also in the middle of a request."""
        self.waits_no_more()
        self.transport.abort()

    def waits_no_more(self) -> None:
        """Let it stay."""
        if self._ends is not None:
            self._ends.cancel()
