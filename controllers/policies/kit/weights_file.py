"""Files of learnt weights: numbers alone, with a checksum, and never a program. Read once.

Safetensors holds arrays and words, so that reading a file runs nothing. The checksum finds damage and a hand that
changed a number; it is no signature: the file comes with the package, and is as trustworthy as that.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from controllers.core.errors import SpeconError

MOST_BYTES: Final = 1 << 20


class BadWeightsError(SpeconError):
    """A file of weights is damaged, or not one that this code was trained for."""


def checksum(tensors: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of names, shapes and numbers of ``tensors``."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].shape}{tensors[name].dtype}".encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()


def write_weights(path: Path, tensors: dict[str, np.ndarray], features: str, told: Mapping[str, str]) -> None:
    """Write ``tensors`` to ``path``, with the version of their ``features`` and what is ``told`` of the training."""
    save_file(tensors, path, {**told, "features": features, "sha256": checksum(tensors)})
    path.chmod(0o644)  # it is made for its owner alone


def read_weights(
    path: Path, features: str, shapes: Mapping[str, tuple[int, ...]], kind: type[np.generic], train: str
) -> dict[str, np.ndarray]:
    """Read the tensors of a file of weights.

    Args:
        path: The file.
        features: The version of features that this code has.
        shapes: The tensors that belong into it, each with its shape.
        kind: The type of their numbers.
        train: The command that makes such a file.

    Raises:
        BadWeightsError: It is not there, is too large, damaged, or of other features or another network.
    """
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        message = f"{path}: no file of weights of at most {MOST_BYTES} bytes; install hera-specon again"
        raise BadWeightsError(message)
    try:
        with safe_open(path, framework="numpy") as file:
            told = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except (SafetensorError, OSError) as error:
        message = f"{path}: not a whole file of weights ({error}); install hera-specon again"
        raise BadWeightsError(message) from error
    if told.get("features") != features:
        message = (
            f"{path}: trained on features of version {told.get('features')!r}, and this code has {features!r}; "
            f"train it again with {train}"
        )
        raise BadWeightsError(message)
    found = {name: values.shape for name, values in tensors.items() if values.dtype == kind}
    if wrong := sorted(name for name in {*shapes, *tensors} if shapes.get(name) != found.get(name)):
        message = (
            f"{path}: of another network: {wrong[0]} is {found.get(wrong[0])} where {shapes.get(wrong[0])} belongs"
        )
        raise BadWeightsError(message)
    if (have := checksum(tensors)) != told.get("sha256"):
        message = f"{path}: damaged: its checksum is {have}, and {told.get('sha256')} is written in it"
        raise BadWeightsError(message)
    if not all(np.isfinite(values).all() for values in tensors.values()):
        message = f"{path}: damaged: not all of its numbers are finite"
        raise BadWeightsError(message)
    return tensors
