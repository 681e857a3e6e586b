"""The one thing that KWOK's kubelets cannot do here: take an exec, with which a controller asks a trainer to leave."""

import base64
import hashlib
import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, Self

_MAGIC: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_PROTOCOL: Final = "v4.channel.k8s.io"
_STATUS_CHANNEL: Final = b"\x03"
_BINARY: Final = 0x82
_CLOSE: Final = b"\x88\x02\x03\xe8"


class KubeletDoor:
    """Answers each ``/exec/NAMESPACE/POD/...`` over a WebSocket with success, after it was told to ``left``.

    A context manager. ``certificate`` is a certificate and its key; the API server does not check it.
    """

    def __init__(self, port: int, certificate: tuple[Path, Path], left: Callable[[str], None]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        # So that the API server asks in HTTP/1.1, which a WebSocket begins in.
        context.set_alpn_protocols(["http/1.1"])
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(left), bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.request_queue_size = 128
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._server.server_bind()
        self._server.server_activate()
        self._thread = threading.Thread(target=self._server.serve_forever, name="kubelets", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(left: Callable[[str], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_GET(self) -> None:
            parts = self.path.partition("?")[0].split("/")
            key = self.headers.get("Sec-WebSocket-Key", "")
            self.close_connection = True
            if parts[1] != "exec" or not key:
                self.send_error(400)
                return
            accept = hashlib.sha1((key + _MAGIC).encode(), usedforsecurity=False).digest()
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(accept).decode())
            self.send_header("Sec-WebSocket-Protocol", _PROTOCOL)
            self.end_headers()
            left(parts[3])
            self.wfile.write(_frame(_STATUS_CHANNEL + json.dumps({"status": "Success"}).encode()) + _CLOSE)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _frame(payload: bytes) -> bytes:
    return bytes([_BINARY, len(payload)]) + payload
