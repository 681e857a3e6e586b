"""The artifacts of a trial's own MLflow run as a store of objects: ``mlflow``. It needs a server that passes them on.

Nobody has to make a bucket or a volume then, and who deletes the run deletes its checkpoints. MLflow knows no
conditional writes.
"""

import base64
import http.client
import os
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPResponse
from pathlib import Path
from typing import IO, Any, Final

from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.numbered import read_numbered, write_numbered
from mlflow_hooks.objects import ObjectInfo, StoreError, Version
from mlflow_hooks.tracking_server import TrackingError, tracking_uri

ADDRESS: Final = "mlflow"
_FOLDER: Final = "specon-state"
"""Folder of a run's artifacts that holds the objects."""
_PROXIED: Final = "mlflow-artifacts:"
_ARTIFACTS: Final = "/api/2.0/mlflow-artifacts/artifacts"
_TIMEOUT_S: Final = 60.0
_MOST_SMALL: Final = 64 * 2**20
_MOST_DEPTH: Final = 16
_GONE: Final = 404


class RunArtifacts:
    """The objects of one trial in the artifacts of its run.

    Args:
        find: returns the URI of the run's artifacts; it is asked once MLflow is needed, until it answers.
    """

    conditional = False

    def __init__(self, find: Callable[[], str]) -> None:
        self._find = find
        self._root = ""

    def read(self, key: str) -> tuple[bytes, Version] | None:
        """Return the newest version of an object."""
        return read_numbered(self, key)

    def write(self, key: str, data: bytes, instead_of: Version | None) -> Version:
        """Write a version of an object."""
        return write_numbered(self, key, data, instead_of)

    def get(self, key: str) -> bytes | None:
        """Return a small object."""
        try:
            with closing(self._ask("GET", self._path(key))) as answer:
                return answer.read(_MOST_SMALL)
        except _MissingArtifactError:
            return None

    def put(self, key: str, data: bytes) -> None:
        """Write a small object."""
        self._ask("PUT", self._path(key), data).close()

    def upload(self, key: str, path: Path) -> None:
        """Send a file."""
        with path.open("rb") as file:
            self._ask("PUT", self._path(key), file, path.stat().st_size).close()

    def download(self, key: str, path: Path) -> None:
        """Fetch a file."""
        try:
            with closing(self._ask("GET", self._path(key))) as answer, path.open("wb") as file:
                shutil.copyfileobj(answer, file, 2**20)
        except (OSError, http.client.HTTPException) as error:
            message = f"MLflow did not send all of {key}: {error}"
            raise StoreError(message) from error

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects."""
        for key in keys:
            try:
                self._ask("DELETE", self._path(key)).close()
            except _MissingArtifactError:
                continue

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with ``prefix``; MLflow does not tell when they were written."""
        folder = prefix.rpartition("/")[0]
        for key, size in self._below(folder, 0):
            if key.startswith(prefix):
                yield ObjectInfo(key, size, datetime.now(UTC))

    def _below(self, folder: str, depth: int) -> Iterator[tuple[str, int]]:
        query = urllib.parse.urlencode({"path": f"{self._within()}/{folder}".rstrip("/")})
        try:
            with closing(self._ask("GET", f"?{query}")) as answer:
                files = parsed(answer.read(_MOST_SMALL)).get("files", [])
        except _MissingArtifactError:
            return
        except (ValueError, AttributeError, OSError) as error:
            message = f"MLflow did not list {folder}: {error}"
            raise StoreError(message) from error
        for file in files:
            key = f"{folder}/{file['path']}" if folder else str(file["path"])
            if not file.get("is_dir"):
                yield key, int(file.get("file_size") or 0)
            elif depth < _MOST_DEPTH:
                yield from self._below(key, depth + 1)

    def _path(self, key: str) -> str:
        return "/" + urllib.parse.quote(f"{self._within()}/{key}")

    def _within(self) -> str:
        """Return the folder of the run's artifacts below the server's own.

        Raises:
            StoreError: MLflow is away, or it does not pass artifacts on.
        """
        if not self._root:
            try:
                found = self._find()
            except TrackingError as error:
                raise StoreError(str(error)) from error
            if not found.startswith(_PROXIED):
                message = (
                    f"this MLflow does not pass artifacts on (they are in {urllib.parse.urlsplit(found).scheme}:...); "
                    "name a bucket in state= instead"
                )
                raise StoreError(message)
            self._root = urllib.parse.urlsplit(found).path.strip("/") + f"/{_FOLDER}"
        return self._root

    def _ask(
        self, method: str, path: str, data: bytes | IO[bytes] | None = None, size: int | None = None
    ) -> HTTPResponse:
        headers = {"Content-Type": "application/octet-stream", **_login()}
        if size is not None:
            headers["Content-Length"] = str(size)
        url = tracking_uri().rstrip("/") + _ARTIFACTS + path
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - the user's own MLflow
        try:
            answer: Any = urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310 - as above
        except urllib.error.HTTPError as error:
            with error:
                message = f"MLflow answers {error.code} to {method} of an artifact"
                raise (_MissingArtifactError if error.code == _GONE else StoreError)(message) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise StoreError(str(error)) from error
        return answer  # type: ignore[no-any-return]  # urlopen's own type says less


class _MissingArtifactError(StoreError):
    """There is no such artifact."""


def _login() -> dict[str, str]:
    """Return the header that MLflow's own client would send."""
    if token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
        return {"Authorization": f"Bearer {token}"}
    if user := os.environ.get("MLFLOW_TRACKING_USERNAME"):
        password = os.environ.get("MLFLOW_TRACKING_PASSWORD", "")
        return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}
    return {}
