"""Servers that take a connection and then behave badly, in threads of this process."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

HALF = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"run": '
_LONGEST_REQUEST = 2**20


@dataclass
class BadServer:
    """Answers every request with ``answer`` and then nothing more; with none at all where it is empty."""

    answer: bytes = b""
    asked: int = 0
    _held: list[socket.socket] = field(default_factory=list)
    _listening: socket.socket = field(default_factory=socket.socket)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    @contextmanager
    def serving(self) -> Iterator["BadServer"]:
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen(16)
        threading.Thread(target=self._serve, daemon=True).start()
        try:
            yield self
        finally:
            for one in (self._listening, *self._held):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._held.append(connection)
            with suppress(OSError):
                connection.recv(_LONGEST_REQUEST)
                self.asked += 1
                connection.sendall(self.answer)


def refusal(status: str, retry_after: str = "") -> bytes:
    """Return an answer that refuses."""
    asked = f"Retry-After: {retry_after}\r\n" if retry_after else ""
    return f"HTTP/1.1 {status}\r\n{asked}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode()
