"""From the address of a store of objects to the store."""

from typing import Final

from mlflow_hooks import bucket, folder_objects
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.objects import ObjectStore

KINDS: Final = (*bucket.SCHEMES, folder_objects.SCHEME)


def open_store(address: str) -> ObjectStore:
    """Return the store at ``address``, such as ``s3://bucket/prefix`` or ``file:///mnt/shared/prefix``.

    Raises:
        BadEnvironmentError: it is no such address, or what it needs is not installed.
    """
    if address.startswith(bucket.SCHEMES):
        return bucket.Bucket(address)
    if address.startswith(folder_objects.SCHEME):
        return folder_objects.FolderObjects(address)
    message = f"{address!r} is no store for checkpoints; one begins with {', '.join(KINDS)}"
    raise BadEnvironmentError(message)
