"""A server is believed to be the run's own MLflow only if a process of the run listens there."""

import http.server
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.worlds.local import mlflow_server
from controllers.worlds.local.mlflow_server import LocalMlflow, MlflowServerError


class Stranger(http.server.BaseHTTPRequestHandler):
    """Says that all is well, whatever is asked."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port that was free when it was chosen, and that a stranger has by now."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(mlflow_server, "_free_port", lambda: server.server_address[1])
        yield int(server.server_address[1])
        server.shutdown()


def test_a_stranger_on_the_port_is_not_believed(taken: int, tmp_path: Path) -> None:
    server = LocalMlflow(tmp_path)
    assert server._healthy()
    assert not server._listens()
    server.start()
    try:
        with pytest.raises(MlflowServerError, match=f"another process answers at http://127.0.0.1:{taken}"):
            server.wait_ready()
    finally:
        server.close()


def test_a_server_whose_port_a_stranger_has_taken_is_not_started_again_and_again(taken: int, tmp_path: Path) -> None:
    server = LocalMlflow(tmp_path)
    server.keep_alive()
    assert server.pid == 0, taken


@pytest.mark.parametrize(("program", "starts"), [("while True: pass", 1), ("import time; time.sleep(60)", 2)])
def test_a_server_that_works_on_its_start_is_waited_for_and_one_that_does_nothing_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, starts: int
) -> None:
    monkeypatch.setattr(mlflow_server, "own_command", lambda *_: [sys.executable, "-c", program])
    monkeypatch.setattr(mlflow_server, "_READY_WITHIN_S", 3.0)
    monkeypatch.setattr(mlflow_server, "_LOOK_EVERY_S", 0.2)
    monkeypatch.setattr(mlflow_server, "_PAUSE_S", 0.0)
    server = LocalMlflow(tmp_path)
    server.start()
    try:
        began = time.monotonic()
        while server._starts < 2 and time.monotonic() < began + 5.5:
            server.keep_alive()
            time.sleep(0.05)
        assert server._starts == starts
    finally:
        server.close()


def test_a_server_that_cannot_come_up_is_told_once_and_given_up_after_some_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow_server, "own_command", lambda *_: [sys.executable, "-c", "raise SystemExit(3)"])
    monkeypatch.setattr(mlflow_server, "_PAUSE_S", 0.1)
    server = LocalMlflow(tmp_path)
    told: list[str] = []
    server.start()
    try:
        began = time.monotonic()
        while not server.given_up and time.monotonic() < began + 20.0:
            server.keep_alive()
            told += server.news()
            time.sleep(0.02)
        assert server.given_up
        assert len(told) == 1
        assert "did not come up" in told[0]
        assert "mlflow-server.log" in told[0]
    finally:
        server.close()
