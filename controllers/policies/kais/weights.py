"""The file of weights: what it must be, and what the network was trained on. Read once."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

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
from controllers.policies.kit.weights_file import read_weights, write_weights

SHIPPED: Final = Path(__file__).with_name("weights.safetensors")
RANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "trial": TRIAL_FEATURES,
    "node": NODE_FEATURES,
    "cluster": CLUSTER_FEATURES,
    "pair": PAIR_FEATURES,
    "move": MOVE_FEATURES,
}
"""The features whose ranges the file holds, by kind."""


@dataclass(frozen=True)
class Trained:
    """A network, and the least and the most (two rows) of each feature that it was trained on, by kind."""

    network: PolicyNetwork
    ranges: Mapping[str, Floats]


def write(path: Path, trained: Trained, told: Mapping[str, str]) -> None:
    """Write ``trained`` to ``path``, with what is ``told`` of the training."""
    tensors = {f"matrix.{name}": _to_int16(values) for name, values in trained.network.matrices.items()}
    tensors |= {f"bias.{name}": _to_int16(values) for name, values in trained.network.biases.items()}
    tensors |= {f"range.{name}": _to_int16(values) for name, values in trained.ranges.items()}
    write_weights(path, tensors, FEATURES_VERSION, told)


@lru_cache(maxsize=4)
def read(path: Path = SHIPPED) -> Trained:
    """Read a file of weights.

    Raises:
        BadWeightsError: It is not there, is too large, damaged, or of other features or another network.
    """
    shapes: dict[str, tuple[int, ...]] = {f"matrix.{name}": shape for name, shape in SHAPES.items()}
    shapes |= {f"bias.{name}": (length,) for name, length in BIASES.items()}
    shapes |= {f"range.{name}": (2, len(features)) for name, features in RANGES.items()}
    tensors = read_weights(path, FEATURES_VERSION, shapes, np.int16, "python -m benchmarks.train_kais")
    numbers = {name: values.astype(np.float64) / GRID for name, values in tensors.items()}
    network = PolicyNetwork(
        {name: numbers[f"matrix.{name}"] for name in SHAPES}, {name: numbers[f"bias.{name}"] for name in BIASES}
    )
    return Trained(network, {name: numbers[f"range.{name}"] for name in RANGES})


def _to_int16(values: Floats) -> np.ndarray:
    return np.clip(np.rint(values * GRID), -32767, 32767).astype(np.int16)
