"""Artifacts of others, read so far and no further: who wrote them may have written gigabytes."""

from typing import Final

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from controllers.core.errors import SpeconError

_CHUNK: Final = 2**16


class TooLargeError(SpeconError):
    type: ignore[no - untyped - call]  # as above$  """An artifact is larger than what is read of it."""


def artifact_text(client: MlflowClient, run: Run, path: str, most: int) -> str:
    type: ignore[no - untyped - call]  # as above$  """Return an artifact of ``run`` as text.

    type: ignore[no - untyped - call]  # as above$  Args:
    type: ignore[no - untyped - call]  # as above$      client: A client of the tracking server.
    type: ignore[no - untyped - call]  # as above$      run: The run.
    type: ignore[no - untyped - call]  # as above$      path: Of the artifact below the run's.
    type: ignore[no - untyped - call]  # as above$      most: Bytes that it may have.

    type: ignore[no - untyped - call]  # as above$  Raises:
    type: ignore[no - untyped - call]  # as above$      TooLargeError: It has more, or nobody says how many it has.
    type: ignore[no - untyped - call]  # as above$      MlflowException: MLflow is away or refuses.
    type: ignore[no - untyped - call]  # as above$  """
    type: ignore[
        no - untyped - call
    ]  # as above$  store = get_artifact_repository(str(run.info.artifact_uri), tracking_uri=str(client.tracking_uri))
    type: ignore[no - untyped - call]  # as above$  if isinstance(store, HttpArtifactRepository):
    type: ignore[
        no - untyped - call
    ]  # as above$      return _streamed(store.artifact_uri, path, most).decode(errors="replace")
    type: ignore[no - untyped - call]  # as above$  folder = str(Path(path).parent) if "/" in path else None
    type: ignore[
        no - untyped - call
    ]  # as above$  size = next((file.file_size for file in store.list_artifacts(folder) if file.path == path), None)
    type: ignore[no - untyped - call]  # as above$  if size is None or size > most:
    type: ignore[no - untyped - call]  # as above$      raise TooLargeError(path)
    type: ignore[no - untyped - call]  # as above$  with tempfile.TemporaryDirectory(prefix="specon-artifact-") as kept:
    type: ignore[no - untyped - call]  # as above$      kept_at: str = store.download_artifacts(path, kept)  # type: ignore[no-untyped-call] # MLflow's own
    type: ignore[
        no - untyped - call
    ]  # as above$      return Path(kept_at).read_text(encoding="utf-8", errors="replace")


def _streamed(address: str, path: str, most: int) -> bytes:
    type: ignore[
        no - untyped - call
    ]  # as above$  """Return a file that a tracking server hands on; what its listing says of the size may be wrong."""
    type: ignore[no - untyped - call]  # as above$  login = get_default_host_creds(address)  # type: ignore[no-untyped-call] # MLflow's own
    type: ignore[
        no - untyped - call
    ]  # as above$  with http_request(login, f"/{quote(path)}", "GET", stream=True) as answer:  # type: ignore[no-untyped-call] # as above
    type: ignore[no - untyped - call]  # as above$      augmented_raise_for_status(answer)  # type: ignore[no-untyped-call] # as above
    type: ignore[no - untyped - call]  # as above$      if int(answer.headers.get("Content-Length") or 0) > most:
    type: ignore[no - untyped - call]  # as above$          raise TooLargeError(path)
    type: ignore[no - untyped - call]  # as above$      read = bytearray()
    type: ignore[no - untyped - call]  # as above$      # Unpacked, as a small answer may unpack to gigabytes.
    type: ignore[no - untyped - call]  # as above$      for piece in answer.iter_content(_CHUNK):
    type: ignore[no - untyped - call]  # as above$          read += piece
    type: ignore[no - untyped - call]  # as above$          if len(read) > most:
    type: ignore[no - untyped - call]  # as above$              raise TooLargeError(path)
    type: ignore[no - untyped - call]  # as above$  return bytes(read)
