"""The file of weights: what it must be, and what the network was trained on. Read once."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from controllers.core.errors import SpeconError
from controllers.policies.kais.grid import GRID, Floats
from controllers.policies.kais.network import BIASES, SHAPES, PolicyNetwork
from controllers.policies.kais.scene import (
    CLUSTER_FEATURES,
    FEATURES_VERSION,
    MOVE_FEATURES,
    NODE_FEATURES,
    PAIR_FEATURES,
    TRIAL_FEATURES,
)

SHIPPED: Final = Path(__file__).with_name("weights.safetensors")
MOST_BYTES: Final = 1 << 20
RANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "trial": TRIAL_FEATURES,
    "node": NODE_FEATURES,
    "cluster": CLUSTER_FEATURES,
    "pair": PAIR_FEATURES,
    "move": MOVE_FEATURES,
}
"""The features whose ranges the file holds, by kind."""


class BadWeightsError(SpeconError):
    """A file of weights is damaged, or not one that this code was trained for."""


@dataclass(frozen=True)
class Trained:
    """A network, and the least and the most (two rows) of each feature that it was trained on, by kind."""

    network: PolicyNetwork
    ranges: Mapping[str, Floats]


def checksum(tensors: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of names, shapes and numbers of ``tensors``."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].shape}{tensors[name].dtype}".encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()


def write(path: Path, trained: Trained, told: Mapping[str, str]) -> None:
    """Write ``trained`` to ``path``, with what is ``told`` of the training."""
    tensors = {f"matrix.{name}": _to_int16(values) for name, values in trained.network.matrices.items()}
    tensors |= {f"bias.{name}": _to_int16(values) for name, values in trained.network.biases.items()}
    tensors |= {f"range.{name}": _to_int16(values) for name, values in trained.ranges.items()}
    save_file(tensors, path, {**told, "features": FEATURES_VERSION, "sha256": checksum(tensors)})
    path.chmod(0o644)  # it is made for its owner alone


@lru_cache(maxsize=4)
def read(path: Path = SHIPPED) -> Trained:
    """Read a file of weights.

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
    _check(path, told, tensors)
    numbers = {name: values.astype(np.float64) / GRID for name, values in tensors.items()}
    network = PolicyNetwork(
        {name: numbers[f"matrix.{name}"] for name in SHAPES}, {name: numbers[f"bias.{name}"] for name in BIASES}
    )
    return Trained(network, {name: numbers[f"range.{name}"] for name in RANGES})


def _check(path: Path, told: Mapping[str, str], tensors: Mapping[str, np.ndarray]) -> None:
    if told.get("features") != FEATURES_VERSION:
        message = (
            f"{path}: trained on features of version {told.get('features')!r}, and this code has {FEATURES_VERSION!r}; "
            "train it again with python -m benchmarks.train_kais"
        )
        raise BadWeightsError(message)
    wanted: dict[str, tuple[int, ...]] = {f"matrix.{name}": shape for name, shape in SHAPES.items()}
    wanted |= {f"bias.{name}": (length,) for name, length in BIASES.items()}
    wanted |= {f"range.{name}": (2, len(features)) for name, features in RANGES.items()}
    shapes = {name: values.shape for name, values in tensors.items() if values.dtype == np.int16}
    if wrong := sorted(name for name in {*wanted, *tensors} if wanted.get(name) != shapes.get(name)):
        message = (
            f"{path}: of another network: {wrong[0]} is {shapes.get(wrong[0])} where {wanted.get(wrong[0])} belongs"
        )
        raise BadWeightsError(message)
    if (have := checksum(tensors)) != told.get("sha256"):
        message = f"{path}: damaged: its checksum is {have}, and {told.get('sha256')} is written in it"
        raise BadWeightsError(message)


def _to_int16(values: Floats) -> np.ndarray:
    return np.clip(np.rint(values * GRID), -32767, 32767).astype(np.int16)
