"""A command in a pod takes bounded time, whatever the API server, the kubelet or the pod does."""

import base64
import contextlib
import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import parse_qsl, urlsplit

import pytest
from kubernetes import client

from controllers.worlds.argo.calls import exec_call
from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.calls.errors import NotAllowedNowError, RejectedError, UnavailableError
from controllers.worlds.argo.calls.exec_call import run_command
from controllers.worlds.argo.reading.pods import project_pod
from controllers.worlds.argo.writing.pod_changes import ask_to_leave, kill
from tests.controllers.worlds.argo.objects import Json, pod

PATH = "/api/v1/namespaces/sweeps/pods/sweep-x-a-0/exec"
_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE = bytes([0x88, 2]) + (1000).to_bytes(2, "big")
Behaviour = Callable[[socket.socket], None]


def frame(channel: int, content: bytes) -> bytes:
    payload = bytes([channel]) + content
    return bytes([0x82, len(payload)]) + payload


def status(**told: str) -> bytes:
    return frame(3, json.dumps(told).encode()) + _CLOSE


class Door:
    """Takes connections, and then does as its test says."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.upgrades = True
        self.behave: Behaviour = lambda connection: connection.sendall(status(status="Success"))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._closed = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def api(self) -> KubeApi:
        configuration = client.Configuration()
        configuration.host = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        return KubeApi(configuration)

    def close(self) -> None:
        self._closed.set()
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(4096)
            first, *headers = request.decode().splitlines()
            self.asked.append(first.split()[1])
            if self.upgrades:
                found = dict(line.split(": ", 1) for line in headers if ": " in line)
                key = next(value for name, value in found.items() if name.lower() == "sec-websocket-key")
                accept = base64.b64encode(hashlib.sha1((key + _MAGIC).encode(), usedforsecurity=False).digest())
                connection.sendall(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    b"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n"
                )
            self.behave(connection)
            self._closed.wait(20)


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_CONNECT_S", 0.5), ("_RUN_S", 0.6), ("_LOOK_S", 0.1)):
        monkeypatch.setattr(exec_call, name, seconds)


def test_a_command_that_ends_well_is_no_news(door: Door) -> None:
    run_command(door.api(), PATH, "main", ("/bin/sh", "-c", "kill -9 -1"))
    (asked,) = door.asked
    assert urlsplit(asked).path == PATH
    assert [value for name, value in parse_qsl(urlsplit(asked).query) if name == "command"] == [
        "/bin/sh",
        "-c",
        "kill -9 -1",
    ]


def test_a_command_that_fails_is_told_in_the_servers_words(door: Door) -> None:
    door.behave = lambda connection: connection.sendall(status(status="Failure", message="no such file"))
    with pytest.raises(UnavailableError, match="no such file"):
        run_command(door.api(), PATH, "main", ("/bin/sh",))


def silent(_connection: socket.socket) -> None:
    """Say nothing more."""


def chatty(connection: socket.socket) -> None:
    while True:
        connection.sendall(frame(1, b"x" * 100))


@pytest.mark.parametrize(
    ("upgrades", "behave", "told"),
    [
        (False, silent, "timed out"),
        (True, silent, "does not end"),
        (True, chatty, "does not end, or prints too much"),
        (True, lambda connection: connection.shutdown(socket.SHUT_RDWR), "exec at"),
        (True, lambda connection: connection.sendall(_CLOSE), "without saying how"),
        (
            False,
            lambda connection: connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n\r\n"),
            "exec at",
        ),
    ],
    ids=["no handshake", "no end", "no end of output", "cut", "closed at once", "sent elsewhere"],
)
def test_whatever_hangs_holds_no_thread_for_good(door: Door, *, upgrades: bool, behave: Behaviour, told: str) -> None:
    door.upgrades, door.behave = upgrades, behave
    began = time.monotonic()
    with pytest.raises(UnavailableError, match=told):
        run_command(door.api(), PATH, "main", ("/bin/sh",))
    assert time.monotonic() - began < 10


def test_who_does_not_lead_begins_no_command(door: Door) -> None:
    api = door.api()
    api.may_write = lambda: False
    with pytest.raises(NotAllowedNowError):
        run_command(api, PATH, "main", ("/bin/sh",))
    assert door.asked == []


@pytest.mark.parametrize("field", ["hostPID", "shareProcessNamespace"])
def test_no_signal_is_sent_where_it_would_reach_processes_of_others(door: Door, field: str) -> None:
    made: Json = pod(on="n1")
    made["spec"][field] = True
    record = project_pod(made)
    assert record is not None
    for signal in (partial(ask_to_leave, signals=True), kill):
        with pytest.raises(RejectedError, match=f"sweeps/sweep-x-a-0: {field} is set"):
            signal(door.api(), record)
    assert door.asked == []
