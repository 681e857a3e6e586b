"""Whether the order of the trials early in their training foretells the order at its end.

Rules that pause or end trials early rely on that. A learning rate that warms up, or goes in one cycle, breaks it, and
the shape of a learning curve does not show it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controllers.core.model import Direction
from controllers.policies.promote import FIRST_RUNG
from hera_specon.records.history import ObjectiveReading
from hera_specon.records.run_folder import PolicyRun

LEAST_TRIALS: Final = 8
"""Trained to their end: the order of fewer says nothing."""
LITTLE: Final = 0.5
"""Agreement below which an early order is no guide."""


@dataclass(frozen=True, slots=True)
class EarlyOrder:
    """How the order at the first rung agrees with that at the end, over ``trials`` trials that came to their end.

    ``agreement`` is Spearman's rank correlation, from -1 to 1: 1 for the same order. ``before_best`` is how many trials
    were better at the rung than the one that was the best at the end.
    """

    policy: str
    trials: int
    agreement: float
    before_best: int

    @property
    def little(self) -> bool:
        """Whether the early order is no guide."""
        return self.agreement < LITTLE


def early_order(run: PolicyRun, direction: Direction) -> EarlyOrder | None:
    """Return how early the order of a run's trials was known; None where too few came to their end."""
    from scipy.stats import spearmanr  # noqa: PLC0415 - it takes half a second, and most commands make no report

    whole = [trial.id for trial in run.result.trials if trial.succeeded and not trial.stopped] if run.result else []
    pairs = [pair for name in whole if (pair := _early_and_final(run.history.reports.get(name, ()), direction))]
    if len(pairs) < LEAST_TRIALS:
        return None
    early, final = zip(*pairs, strict=True)
    if len(set(early)) == 1 or len(set(final)) == 1:
        return None  # all are equally good, so there is no order
    agreement = float(spearmanr(early, final).statistic)
    best = early[final.index(min(final))]
    return EarlyOrder(run.policy, len(pairs), agreement, sum(loss < best for loss in early))


def _early_and_final(reports: Sequence[ObjectiveReading], direction: Direction) -> tuple[float, float] | None:
    """Return the best loss of a trial up to the first rung, and in all; None where it reported too seldom."""
    sign = 1 if direction is Direction.MINIMIZE else -1
    told = [
        (report.step, sign * report.value)
        for report in reports
        if report.step is not None and math.isfinite(report.value)
    ]
    if not told:
        return None
    steps = max(step for step, _ in told) + 1
    early = [loss for step, loss in told if step + 1 <= FIRST_RUNG * steps]
    return (min(early), min(loss for _, loss in told)) if early else None
