"""Servers of objects beside moto that ``make test-stores`` brings: versitygw for S3, and Azurite for Azure.

``python -m tests.mlflow_hooks.more_object_servers`` installs both into the cache, which takes a few minutes once.
"""

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Final

from tests.mlflow_hooks.hook_jobs import free_port
from tests.mlflow_hooks.object_servers import BUCKET, variables

_CACHE: Final = Path(os.environ.get("HERA_SPECON_CACHE", "~/.cache/hera-specon")).expanduser()
_VERSITYGW: Final = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
_AZURITE: Final = "azurite@3.35.0"  # 3.36 and later need a newer Node.js
_ACCOUNT: Final = "devstoreaccount1"
_KEY: Final = base64.b64encode(b"0123456789abcdef" * 4).decode()
_STARTS_WITHIN_S: Final = 60.0


@dataclass
class MoreObjects:
    """A server in a process of its own, and the variables by which clients find its bucket."""

    command: list[str]
    port: int
    address: str
    environment: Mapping[str, str]
    make_bucket: Callable[[], None]
    more_variables: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and make the bucket."""
        self._process = subprocess.Popen(
            self.command,
            env={**os.environ, **self.more_variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        give_up = time.monotonic() + _STARTS_WITHIN_S
        while True:
            try:
                self.make_bucket()
            except OSError:
                assert time.monotonic() < give_up, f"{self.command[0]} does not answer"
                time.sleep(0.1)
            else:
                return

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def versitygw(folder: Path) -> MoreObjects | None:
    """Return a server of S3 over ``folder``, in which a bucket is a folder; None where it is not installed."""
    program = _CACHE / "bin" / "versitygw"
    if not program.exists():
        return None
    port = free_port()
    (folder / BUCKET).mkdir(parents=True)
    login = {**variables(port), "AWS_SECRET_ACCESS_KEY": "test-secret"}
    command = [str(program), "--access", "test", "--secret", "test-secret", "--port", f"127.0.0.1:{port}"]

    def answers() -> None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2).close()
        except urllib.error.HTTPError:
            return  # it wants a login, and so it is there

    return MoreObjects([*command, "posix", str(folder)], port, f"s3://{BUCKET}/sweeps", login, answers)


def azurite(folder: Path) -> MoreObjects | None:
    """Return an emulator of Azure's blobs over ``folder``; None where it is not installed."""
    program = _CACHE / "azurite" / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        return None
    port = free_port()
    login = {
        "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port}/{_ACCOUNT}",
        "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
    }
    command = [str(program), "--silent", "--skipApiVersionCheck", "--location", str(folder), "--blobPort", str(port)]
    accounts = {"AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_KEY}"}
    return MoreObjects(command, port, f"az://{BUCKET}/sweeps", login, lambda: _make_container(port), accounts)


MORE: Final[Mapping[str, Callable[[Path], MoreObjects | None]]] = {"versitygw": versitygw, "azurite": azurite}
"""Servers that ``make test-stores`` installs; elsewhere they are left out."""


def _make_container(port: int) -> None:
    """Make the container by a request that is signed as Azure wants it; its own libraries are not needed for more."""
    date, version = formatdate(usegmt=True), "2021-08-06"
    resource = f"/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{version}\n{resource}"
    signature = base64.b64encode(hmac.digest(base64.b64decode(_KEY), text.encode(), hashlib.sha256)).decode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{_ACCOUNT}/{BUCKET}?restype=container",
        method="PUT",
        headers={
            "x-ms-date": date,
            "x-ms-version": version,
            "Authorization": f"SharedKey {_ACCOUNT}:{signature}",
            "Content-Length": "0",
        },
    )
    urllib.request.urlopen(request, timeout=5).close()  # noqa: S310 - our own server


def install() -> None:
    """Install both servers."""
    go, npm = shutil.which("go"), shutil.which("npm")
    if go is None or npm is None:
        sys.exit("these servers are built with go and npm, which are not here")
    environment = {**os.environ, "GOBIN": str(_CACHE / "bin"), "CGO_ENABLED": "0"}
    subprocess.run([go, "install", _VERSITYGW], env=environment, check=True)
    prefix = str(_CACHE / "azurite")
    subprocess.run([npm, "install", "--no-audit", "--no-fund", "--prefix", prefix, _AZURITE], check=True)


if __name__ == "__main__":
    install()
