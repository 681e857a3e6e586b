"""Numbers on a grid, so that they add up to the same sum in any order, to the last bit. Pure.

Every weight, input and activation of the network is a whole multiple of ``1 / GRID``, and bounded. Products and sums of
them are then exact in 64-bit floats: no library, vector unit or order of summation can change a score, and the same
snapshot leads to the same decision on every machine.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

GRID: Final = 4096.0
MOST: Final = 16.0
"""Bound of every activation: 64 products of numbers below 16 and multiples of 1 / 4096 need 38 bits of 53."""
MOST_WEIGHT: Final = 32767 / GRID
"""Weights are stored as 16-bit multiples."""


def on_grid(values: Floats) -> Floats:
    """Return ``values`` within their bounds, each as the nearest multiple of ``1 / GRID``."""
    return np.asarray(np.rint(np.minimum(np.maximum(values, -MOST), MOST) * GRID) / GRID)


def squash(ratios: Floats) -> Floats:
    """Return r / (1 + r) of ratios from 0 up: from 0 to 1, and on the grid. Division is exact on every machine."""
    bounded = np.minimum(ratios, 1e9)
    return np.asarray(np.rint(bounded / (1.0 + bounded) * GRID) / GRID)
