"""What a trial reports of its steps and CPU seconds. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controllers.core.model import Progress

# Beyond the next three, reports make no sense: whatever trials report, all that follows from it stays finite.
MOST_STEPS: Final = 10**12
MOST_CORE_S: Final = 1e12
MOST_AT_S: Final = 1e12
LEAST_CORE_S: Final = 1e-9
"""Fewer core seconds count as none: a quotient of them would tell nothing."""
LEAST_APART_S: Final = 1e-6
"""Reports that are fewer seconds apart count as one: a quotient of them would tell nothing."""
SCATTER: Final = 0.15
"""Scatter of a trial with two known reports."""


@dataclass(frozen=True, slots=True)
class Report:
    """Step and core seconds (over all attempts) of a trial, ``at`` seconds of the sweep's clock.

    ``waited`` counts the seconds for which its threads waited for a CPU; None where nothing tells.
    """

    at: float
    step: int
    core_seconds: float
    waited: float | None = None


def report_of(progress: Progress | None, *, by_clock: bool = False) -> Report | None:
    """Return the newest report as far as it makes sense; None where it tells nothing of CPU seconds.

    ``by_clock`` tells that it counts all the same: its steps and its time are enough.
    """
    if progress is None or not abs(progress.at) <= MOST_AT_S:
        return None
    if progress.cpu_seconds is None and not by_clock:
        return None
    spent = min(max(progress.cpu_seconds or 0.0, 0.0), MOST_CORE_S)
    waited = None if progress.cpu_wait is None else min(max(progress.cpu_wait, 0.0), MOST_CORE_S)
    return Report(progress.at, min(max(progress.step, 0), MOST_STEPS), spent, waited)


def waited_between(before: Report, after: Report) -> float | None:
    """Return the CPUs that a trial waited for on average between two reports; None where nothing tells."""
    if before.waited is None or after.waited is None:
        return None
    return max(0.0, after.waited - before.waited) / (after.at - before.at)


def scatter_of(reports: Sequence[Report]) -> float:
    """Return the standard deviation of the logarithm of what a step cost between two reports."""
    costs: list[float] = []
    before = reports[0]
    for after in reports[1:]:
        spent = after.core_seconds - before.core_seconds
        if spent >= LEAST_CORE_S and after.step > before.step:  # some trials count their CPU seconds only now and then
            costs.append(math.log(spent / (after.step - before.step)))
            before = after
    mean = math.fsum(costs) / max(1, len(costs))
    return math.sqrt((math.fsum((cost - mean) ** 2 for cost in costs) + SCATTER**2) / max(1, len(costs)))
