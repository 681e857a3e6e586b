"""Artifacts of others, read so far and no further: who wrote them may have written gigabytes."""

import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote

from mlflow.entities import Run
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.store.artifact.http_artifact_repo import HttpArtifactRepository
from mlflow.tracking import MlflowClient
from mlflow.utils.credentials import get_default_host_creds
from mlflow.utils.request_utils import augmented_raise_for_status
from mlflow.utils.rest_utils import http_request

from controllers.core.errors import SpeconError

_CHUNK: Final = 2**16


class ArtifactTooLargeError(SpeconError):
    """An artifact is larger than what is read of it."""


def artifact_text(client: MlflowClient, run: Run, path: str, most: int) -> str:
    """Return an artifact of ``run`` as text.

    Args:
        client: A client of the tracking server.
        run: The run.
        path: Of the artifact below the run's.
        most: Bytes that it may have.

    Raises:
        ArtifactTooLargeError: It has more, or nobody says how many it has.
        MlflowException: MLflow is away or refuses.
    """
    store = get_artifact_repository(str(run.info.artifact_uri), tracking_uri=str(client.tracking_uri))
    if isinstance(store, HttpArtifactRepository):
        return _stream(store.artifact_uri, path, most).decode(errors="replace")
    folder = str(Path(path).parent) if "/" in path else None
    size = next((file.file_size for file in store.list_artifacts(folder) if file.path == path), None)
    if size is None or size > most:
        raise ArtifactTooLargeError(path)
    with tempfile.TemporaryDirectory(prefix="specon-artifact-") as kept:
        kept_at: str = store.download_artifacts(path, kept)  # type: ignore[no-untyped-call]
        return Path(kept_at).read_text(encoding="utf-8", errors="replace")


def _stream(address: str, path: str, most: int) -> bytes:
    """Return a file that a tracking server hands on; what its listing says of the size may be wrong."""
    login = get_default_host_creds(address)  # type: ignore[no-untyped-call]
    with http_request(login, f"/{quote(path)}", "GET", stream=True) as answer:  # type: ignore[no-untyped-call]
        augmented_raise_for_status(answer)  # type: ignore[no-untyped-call]
        if int(answer.headers.get("Content-Length") or 0) > most:
            raise ArtifactTooLargeError(path)
        read = bytearray()
        # Unpacked, as a small answer may unpack to gigabytes.
        for piece in answer.iter_content(_CHUNK):
            read += piece
            if len(read) > most:
                raise ArtifactTooLargeError(path)
    return bytes(read)
