"""Real servers of objects on this machine: one that heeds conditional writes, and one before it that drops them."""

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from tests.mlflow_hooks.hook_jobs import free_port

BUCKET: Final = "trials"
_PYTHON: Final = Path(sys.prefix) / "moto" / "bin" / "python"
"""moto has an environment of its own, which ``make install`` makes."""
_CONDITIONS: Final = {"if-match", "if-none-match"}


@dataclass
class S3Server:
    """moto's server of S3 in a process of its own, with one bucket. It listens on ``host`` alone."""

    host: str = "127.0.0.1"
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Address of the bucket."""
        return f"s3://{BUCKET}/sweeps"

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which clients find the server."""
        return variables(self.port, self.host)

    def start(self) -> None:
        assert _PYTHON.exists(), "make install sets moto up"
        self.process = subprocess.Popen(
            [_PYTHON, "-m", "moto.server", "-H", self.host, "-p", str(self.port)],
            env={**os.environ, "MOTO_S3_DEFAULT_MAX_KEYS": "1000"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + 60
        while True:
            try:
                request = urllib.request.Request(f"http://{self.host}:{self.port}/{BUCKET}", method="PUT")
                with urllib.request.urlopen(request, timeout=5):  # noqa: S310 - as above
                    return
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.1)

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def variables(port: int, host: str = "127.0.0.1") -> dict[str, str]:
    """Return what tells clients where a server is, and its login."""
    return {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
    }


class WithoutConditions:
    """A server before another one that drops the conditions of writes, as some servers of S3's protocol do."""

    def __init__(self, behind: int) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                to = http.client.HTTPConnection("127.0.0.1", behind, timeout=30)
                kept = {name: value for name, value in self.headers.items() if name.lower() not in _CONDITIONS}
                to.request(self.command, self.path, body=data, headers=kept)
                answer = to.getresponse()
                content = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in {"transfer-encoding", "connection", "date", "server", "content-length"}:
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
                self.send_header("Content-Length", length or "0")
                self.end_headers()
                self.wfile.write(content)
                to.close()

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - the library's names

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
