"""What earlier sweeps tell of a new one: their trials, as it may learn from them. Pure.

A world reads them once, before the sweep's first decision. Whatever is believed of them gives way to what the sweep
itself shows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

MOST_TRIALS: Final = 500
"""Trials that a sweep learns from, the newest: more make its search no wiser, and every tick longer."""
Parameters = tuple[tuple[str, float | str], ...]
"""Hyperparameters by name, each a finite number or a short text (``controllers.core.parameters`` reads them)."""


@dataclass(frozen=True, slots=True)
class EarlierTrial:
    """A trial of an earlier sweep, which had ended before the new sweep began.

    ``came_to`` has a value for each objective of the new sweep, none where the trial failed or diverged; it is None
    where the trial did not log them all, so that it tells a search nothing. ``violations`` are by how much it breaks
    each constraint, 0 or below where it keeps it. ``steps`` is how many it makes in all, None unless it made them, and
    ``cost`` what one takes, in CPU seconds where it ran. It ended ``age_s`` seconds before the new sweep began.
    """

    id: str
    parameters: Parameters = ()
    came_to: tuple[float, ...] | None = None
    violations: tuple[float, ...] = ()
    steps: float | None = None
    cost: float | None = None
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Earlier:
    """What was learnt before: the trials of earlier sweeps by the name of the sweep that learns from them.

    The newest come first. ``pending`` tells that they are still being read.
    """

    trials: Mapping[str, tuple[EarlierTrial, ...]] = field(default_factory=dict)
    pending: bool = False

    def __iter__(self) -> Iterator[EarlierTrial]:
        """Yield the trials, each once for every sweep that learns from it."""
        for trials in self.trials.values():
            yield from trials


NOTHING_EARLIER: Final = Earlier()
