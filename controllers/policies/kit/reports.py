"""What a trial reports of its steps and CPU seconds. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SCATTER: Final = 0.15
"""Scatter of a trial of which two reports are known."""


@dataclass(frozen=True, slots=True)
class Report:
    """Step and core seconds (over all attempts) of a trial, ``at`` seconds of the sweep's clock."""

    at: float
    step: int
    core_seconds: float


def scatter_of(reports: Sequence[Report]) -> float:
    """Return the standard deviation of the logarithm of what a step cost between two reports."""
    costs: list[float] = []
    before = reports[0]
    for after in reports[1:]:
        spent = after.core_seconds - before.core_seconds
        if spent > 0 and after.step > before.step:  # some trials count their CPU seconds only now and then
            costs.append(math.log(spent / (after.step - before.step)))
            before = after
    mean = math.fsum(costs) / max(1, len(costs))
    return math.sqrt((math.fsum((cost - mean) ** 2 for cost in costs) + SCATTER**2) / max(1, len(costs)))
