"""Who may come in: those that have the address with its token, from this machine, from no other site's page.

Programs of other users of this machine can reach a port of it, and so can the pages of any site that a browser here
shows. The token in the address keeps both out; the rest keeps a page of another site from using what its user may do.
"""

import secrets
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS: Final = frozenset({"127.0.0.1", "localhost"})
"""Names by which a browser may ask. Another one that leads here is an attack (DNS rebinding)."""
_READING: Final = frozenset({"GET", "HEAD"})
_HEADERS: Final = {
    # Styles of elements are what plotly and the charts' heights need; scripts come from files of ours alone.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data: blob:; "
        "font-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Door:
    """Lets requests through to ``app`` whose path begins with the token, which it takes off.

    Args:
        app: what answers them.
        token: of the address.
        let_in: called with the address and port that each of these came from.
    """

    def __init__(self, app: ASGIApp, token: str, let_in: Callable[[tuple[str, int]], object]) -> None:
        self._app = app
        self._token = token.encode()
        self._let_in = let_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        guarded = _Guarded(send)
        if (why := self._why_not(scope)) is not None:
            await PlainTextResponse(why, status_code=403)(scope, receive, guarded)
            return
        if scope["client"] is not None:
            self._let_in(scope["client"])
        rest = scope["path"].lstrip("/").partition("/")[2]
        await self._app({**scope, "path": f"/{rest}", "raw_path": None, "root_path": ""}, receive, guarded)

    def _why_not(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host.rpartition(":")[0] not in HOSTS and host not in HOSTS:
            return "This page answers to 127.0.0.1 and localhost only."
        given = scope["path"].lstrip("/").partition("/")[0].encode(errors="replace")
        if not secrets.compare_digest(given, self._token):
            return "The address lacks its token: open the one that specon printed."
        foreign = headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}
        if scope["method"] not in _READING and (foreign or headers.get("origin") != f"http://{host}"):
            return "Only this page itself may ask for something."
        return None


class _Guarded:
    """Sends a response with the headers that every one of them has."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await self._send(message)
