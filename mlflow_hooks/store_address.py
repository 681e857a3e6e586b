"""From the address of a store of objects to the store."""

from typing import Final

from mlflow_hooks import bucket, folder_objects, run_artifacts
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.objects import ObjectStore

KINDS: Final = (*bucket.SCHEMES, folder_objects.SCHEME)
_EXAMPLES: Final = {
    "s3": "s3://bucket/prefix",
    "gs": "gs://bucket/prefix",
    "az": "az://container/prefix",
    "file": "file:///mnt/shared/prefix",
}
_UNSAFE: Final = ("{{", "?", "#", " ", "@")
"""Marks that no such address has: placeholders that nobody fills in, credentials, and options."""


def why_no_store(address: object) -> str | None:
    """Return why ``address`` names no store, in words that follow it; None where it does."""
    if address == run_artifacts.ADDRESS:
        return None
    if not isinstance(address, str) or not address.startswith(KINDS):
        return f"is no store for checkpoints; one is {run_artifacts.ADDRESS!r}, or begins with {', '.join(KINDS)}"
    scheme, _, rest = address.partition("://")
    place = rest.partition("/")[2 if scheme == "file" else 0]
    if not place or any(mark in address for mark in _UNSAFE):
        return f"names no {'folder' if scheme == 'file' else 'bucket'}; write it as {_EXAMPLES[scheme]}"
    return None


def open_store(address: str) -> ObjectStore:
    """Return the store at ``address``, which names no run, such as ``s3://bucket/prefix`` or ``file:///mnt/shared/prefix``.

    Raises:
        BadEnvironmentError: it is no such address, or what it needs is not installed.
    """
    if why_not := why_no_store(address):
        message = f"{address!r} {why_not}"
        raise BadEnvironmentError(message)
    if address.startswith(folder_objects.SCHEME):
        return folder_objects.FolderObjects(address)
    return bucket.Bucket(address)
