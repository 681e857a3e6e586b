"""Curves: the best loss of a trial by each fiftieth part of its training. Pure.

Trials report as often as they like, and a policy looks when it can. On one grid they can be compared, and what is kept
of a trial stays small.
"""

from typing import Final

from controllers.core.model import Direction, Progress
from controllers.policies.promote.rungs import losses_of, part_made

PARTS: Final = 50
"""Of a whole training."""
Curve = tuple[float, ...]
"""Best loss so far at the end of each part that was made, the first part first; smaller is better."""


def extended(curve: Curve, progress: Progress, direction: Direction, usual_steps: float | None) -> Curve:
    """Return ``curve`` with what a trial has come to since the last look.

    Args:
        curve: What was known of it.
        progress: Its own.
        direction: Which way its objective improves.
        usual_steps: Steps in all of the others, for a trial that does not tell its own.
    """
    part = part_made(progress, usual_steps)
    new = 0 if part is None else int(part * PARTS + 1e-9) - len(curve)
    if new <= 0:
        return curve
    loss = losses_of(progress, direction).best
    return (*curve, *((min(loss, curve[-1]) if curve else loss,) * new))


def whole(curve: Curve) -> Curve:
    """Return ``curve`` of a trial that has trained to its end, also where it never told how long that would take."""
    return (*curve, *(curve[-1:] * (PARTS - len(curve))))
