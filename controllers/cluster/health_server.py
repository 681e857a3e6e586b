"""What a kubelet asks of the controller: /livez and /readyz."""

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from controllers.core.errors import SpeconError

Check = Callable[[], str | None]


class PortError(SpeconError):
    """A port that the controller should listen on can't be had."""


class HealthServer:
    """Answers each path of ``checks`` with 200, or with 503 and why.

    Raises:
        PortError: the port is taken, or not allowed.
    """

    def __init__(self, port: int, checks: Mapping[str, Check]) -> None:
        try:
            self._server = ThreadingHTTPServer(("", port), _handler(checks))
        except OSError as error:
            raise PortError(port_problem("health", port, error)) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def port_problem(what: str, port: int, error: OSError) -> str:
    """Return what to tell people where a port can't be had."""
    return f"--{what}-port {port} can't be listened on: {error.strerror or error}; give another, or stop what uses it"


def _handler(checks: Mapping[str, Check]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            check = checks.get(self.path.partition("?")[0])
            problem = check() if check else None
            code = 404 if check is None else 503 if problem else 200
            text = (problem or ("ok" if check else "no such page")).encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Say nothing: a kubelet asks every few seconds."""

    return Handler
