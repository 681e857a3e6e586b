"""How a node's cores are shared among its attempts: weighted max-min fairness, as the kernel's CPU weights give it."""

from collections.abc import Sequence
from typing import Final

LEAST_WEIGHT: Final = 2 / 1024
"""Cores that a request of nothing weighs: cpu.shares are never below 2, and 1024 of them are a core."""


def fair_cores(weights: Sequence[float], caps: Sequence[float], capacity: float) -> list[float]:
    """Return the cores that each gets of ``capacity``.

    Nobody gets more than its cap; what one leaves unused, the others share by weight. Nobody could get more without
    another, who has less in proportion to its weight, getting less (progressive filling: Bertsekas and Gallager,
    Data Networks, 2nd ed., section 6.5.2).

    Args:
        weights: CPU requests in cores; greater than 0.
        caps: most cores that each can use.
        capacity: cores of the node.
    """
    cores = list(caps)
    if sum(caps) <= capacity:
        return cores
    left, weight_left = capacity, sum(weights)
    for index in sorted(range(len(caps)), key=lambda i: caps[i] / weights[i]):
        cores[index] = min(caps[index], max(0.0, left) * weights[index] / weight_left)
        left -= cores[index]
        weight_left -= weights[index]
    return cores
