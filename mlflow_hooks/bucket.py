"""Buckets of S3, Google Cloud Storage and Azure, through obstore: one library, small, and quick to import.

Which account it is, and where another server than the cloud's own answers, the usual variables say: ``AWS_*``,
``GOOGLE_*``, ``AZURE_*``.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.numbered import read_numbered, write_numbered
from mlflow_hooks.objects import ObjectInfo, StaleVersionError, StoreError, Version
from mlflow_hooks.state_folder import report

if TYPE_CHECKING:
    import obstore

SCHEMES: Final = ("s3://", "gs://", "az://")
_PART: Final = 16 * 2**20
"""Bytes of one request: a large object comes and goes in several of them."""
_AT_ONCE: Final = 4
"""Requests for parts of one object at a time."""
_REQUEST: Final = timedelta(seconds=60)
_CONNECT: Final = timedelta(seconds=10)
_RETRIES: Final = 3
_RETRIED: Final = timedelta(seconds=30)
"""obstore repeats requests for so long where a server is busy or broken. Our callers repeat the rest."""
_MOST_ERROR: Final = 300


class Bucket:
    """The objects below an address such as ``s3://bucket/prefix``.

    Attributes:
        conditional: whether the store heeds conditional writes, found out when it is first asked to.

    Raises:
        BadEnvironmentError: obstore is not installed, or the address is none.
    """

    def __init__(self, address: str) -> None:
        try:
            import obstore  # noqa: PLC0415 - a trial without a store need not have it
            from obstore.store import from_url  # noqa: PLC0415
        except ModuleNotFoundError as error:
            message = f"checkpoints in {address} need obstore: pip install 'hera-specon-hooks[stores]'"
            raise BadEnvironmentError(message) from error
        self._obstore = obstore
        self._open: Callable[[], Any] = lambda: from_url(
            address,
            client_options={"allow_http": True, "timeout": _REQUEST, "connect_timeout": _CONNECT},
            retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRIED},
        )
        self._address = address
        try:
            self._store = self._open()
        except (obstore.exceptions.BaseError, ValueError) as error:
            message = f"{address} is not the address of a bucket that can be used: {_brief(error)}"
            raise BadEnvironmentError(message) from error
        self._probed: bool | None = None

    @property
    def conditional(self) -> bool:
        """Whether the store heeds conditional writes; some servers take them and write all the same."""
        if self._probed is None:
            key = f".specon-probe/{uuid.uuid4().hex}"
            with self._asking(key):
                self._obstore.put(self._store, key, b"first", mode="create")
                try:
                    self._obstore.put(self._store, key, b"second", mode="create")
                except (self._obstore.exceptions.AlreadyExistsError, self._obstore.exceptions.PreconditionError):
                    self._probed = True
                else:
                    self._probed = False
            self.remove([key])
            if not self._probed:
                report(
                    f"{self._address} ignores conditional writes: where two attempts of a trial write in the same "
                    "moment, points may be logged twice; most servers of S3's protocol do heed them"
                )
        return self._probed

    def read(self, key: str) -> tuple[bytes, Version] | None:
        """Return an object and its version."""
        if not self.conditional:
            return read_numbered(self, key)
        found = self._get(key)
        return None if found is None else (found[0], _version(found[1]))

    def write(self, key: str, data: bytes, instead_of: Version | None) -> Version:
        """Write an object instead of a version of it."""
        if not self.conditional:
            return write_numbered(self, key, data, instead_of)
        with self._asking(key):
            mode: Any = "create" if instead_of is None else dict(instead_of)
            return _version(self._obstore.put(self._store, key, data, mode=mode))

    def get(self, key: str) -> bytes | None:
        """Return an object as it is now."""
        found = self._get(key)
        return None if found is None else found[0]

    def put(self, key: str, data: bytes) -> None:
        """Write an object, whatever was there."""
        with self._asking(key):
            self._obstore.put(self._store, key, data)

    def _get(self, key: str) -> "tuple[bytes, obstore.ObjectMeta] | None":
        try:
            with self._asking(key):
                answer = self._obstore.get(self._store, key)
                return answer.bytes().to_bytes(), answer.meta
        except _MissingError:
            return None

    def upload(self, key: str, path: Path) -> None:
        """Write an object from a file, a large one in parts."""
        with self._asking(key):
            self._obstore.put(self._store, key, path, chunk_size=_PART, max_concurrency=_AT_ONCE)

    def download(self, key: str, path: Path) -> None:
        """Write what an object holds to a file, in parts: a request has a minute."""
        try:
            with self._asking(key):
                size = self._obstore.head(self._store, key)["size"]
                with path.open("wb") as file:
                    for start in range(0, size, _AT_ONCE * _PART):
                        starts = range(start, min(start + _AT_ONCE * _PART, size), _PART)
                        ends = [min(begin + _PART, size) for begin in starts]
                        for part in self._obstore.get_ranges(self._store, key, starts=[*starts], ends=ends):
                            file.write(part)
        except _MissingError as error:
            message = f"{key} is not there"
            raise StoreError(message) from error

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects."""
        for key in keys:
            try:
                with self._asking(key):
                    self._obstore.delete(self._store, key)
            except _MissingError:
                continue

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects below a prefix."""
        folder = prefix.rpartition("/")[0]  # obstore's own prefixes are whole names
        with self._asking(prefix):
            for several in self._obstore.list(self._store, folder or None):
                for found in several:
                    if found["path"].startswith(prefix):
                        yield ObjectInfo(found["path"], found["size"], found["last_modified"])

    @contextmanager
    def _asking(self, key: str) -> Iterator[None]:
        errors = self._obstore.exceptions
        try:
            yield
        except FileNotFoundError as error:
            raise _MissingError(_brief(error)) from error
        except (errors.AlreadyExistsError, errors.PreconditionError) as error:
            message = f"{key} was changed meanwhile"
            raise StaleVersionError(message) from error
        except (errors.UnauthenticatedError, errors.PermissionDeniedError) as error:
            # Credentials that have run out are read again: the environment or a file may have others by now.
            self._store = self._open()
            message = f"{self._address} refuses: {_brief(error)}"
            raise StoreError(message) from error
        except (errors.BaseError, OSError) as error:
            message = f"{self._address}: {_brief(error)}"
            raise StoreError(message) from error


class _MissingError(StoreError):
    """There is no such object."""


def _version(meta: "obstore.PutResult | obstore.ObjectMeta") -> Version:
    """Return what conditional writes name a version by; Google's wants a generation, the others an entity tag."""
    return {name: value for name in ("e_tag", "version") if (value := meta.get(name))}  # type: ignore[misc]  # by name


def _brief(error: Exception) -> str:
    """Return the first line of what a library says, which may be pages."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:_MOST_ERROR]
