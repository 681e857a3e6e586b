"""Shuffled minibatches whose order is known from the seed alone, so that a step may be a minibatch."""

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def batch_indices(n: int, batch_size: int, seed: int, step: int) -> "npt.NDArray[np.int64]":
    """Return the rows of minibatch ``step`` (0-based, counted over all epochs).

    A pure function of its arguments: each epoch is a fresh permutation of ``range(n)`` cut into
    batches. The last batch may be short.

    Args:
        n: rows in the data set.
        batch_size: rows in a batch.
        seed: any integer from 0.
        step: minibatch since the training began.

    Returns:
        Row numbers, shape ``(batch_size,)`` or shorter.

    Raises:
        ValueError: a size is below 1 or the seed or step is below 0.
    """
    if n < 1 or batch_size < 1 or seed < 0 or step < 0:
        message = f"need n, batch_size >= 1 and seed, step >= 0, not {n}, {batch_size}, {seed}, {step}"
        raise ValueError(message)
    epoch, batch = divmod(step, batches_per_epoch(n, batch_size))
    return _permutation(n, seed, epoch)[batch * batch_size : (batch + 1) * batch_size].copy()


def batches_per_epoch(n: int, batch_size: int) -> int:
    """Return how many minibatches go through all ``n`` rows once."""
    return -(-n // batch_size)


@lru_cache(maxsize=4)
def _permutation(n: int, seed: int, epoch: int) -> "npt.NDArray[np.int64]":
    import numpy as np  # noqa: PLC0415 - only scripts that use NumPy pay for it

    return np.random.default_rng([seed, epoch]).permutation(n)
