"""A page that is really served, and a client that asks it for anything, as browsers and others do."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hera_specon.live.address import listen, new_token
from hera_specon.live.serving import PageServer
from hera_specon.live.sweeps import Shelf

JSON: Final = "application/json"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def html(self) -> str:
        return str(json.loads(self.body)["html"])

    @property
    def problem(self) -> str | None:
        found: str | None = json.loads(self.body)["problem"]
        return found


@dataclass(frozen=True)
class Served:
    port: int
    token: str

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.origin}/{self.token}"

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: object = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        """Ask for ``path`` below the token, as the page itself would but for ``headers``."""
        own = {"Origin": self.origin, "Content-Type": JSON} if method == "POST" else {}
        sent = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(
                method, f"/{self.token if token is None else token}{path}", sent, {**own, **(headers or {})}
            )
            answer = connection.getresponse()
            kept = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, kept, answer.read().decode(errors="replace"))
        finally:
            connection.close()

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask(path, "POST", body, headers)


@contextmanager
def serving(shelf: Shelf) -> Iterator[Served]:
    token, listening = new_token(), listen()
    port = listening.getsockname()[1]
    server = PageServer(shelf, "Runs", token)
    thread = threading.Thread(target=server.serve, args=(listening,))
    thread.start()
    try:
        yield Served(port, token)
    finally:
        server.stop()
        thread.join()
        listening.close()
