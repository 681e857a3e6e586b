"""Who of a node may run for how long: arithmetic only, no process is touched here.

Time is cut into periods. Each gives a node ``quota * period`` CPU seconds, split among its trials by
weight, but to none more than it can use (weighted max-min fairness). A trial that has used up its
part waits for the next period; what it used too much is taken off its next part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PERIOD_S: Final = 0.2
_HEADROOM: Final = 1.1
_LEAST_WANTED: Final = 0.01


@dataclass(slots=True)
class Paced:
    """A trial: its weight, what it may still use in this period, and what it could use of a core's time.

    ``allowance`` below zero is a debt. ``wanted`` is in cores.
    """

    weight: float
    allowance: float = 0.0
    wanted: float = 1.0
    used: float = 0.0
    ran: float = 0.0
    waited: float = 0.0

    @property
    def may_run(self) -> bool:
        """Whether anything is left of the allowance."""
        return self.allowance > 0

    def note(self, used: float, ran: float) -> None:
        """Account for ``used`` CPU seconds in ``ran`` seconds in which it was not stopped."""
        self.allowance -= used
        self.used += used
        self.ran += ran

    def close_period(self) -> None:
        """Learn from the period how many cores it would use if nobody were in its way."""
        if self.ran > 0:
            self.wanted = (self.used + self.waited) / self.ran
        self.used = self.ran = self.waited = 0.0


def open_period(trials: Mapping[str, Paced], quota: float) -> None:
    """Give each trial of a node its part of the next period; debts are kept, savings are not."""
    caps = {key: max(trial.wanted * _HEADROOM, _LEAST_WANTED) * PERIOD_S for key, trial in trials.items()}
    parts = split(quota * PERIOD_S, {key: trial.weight for key, trial in trials.items()}, caps)
    for key, trial in trials.items():
        trial.allowance = min(trial.allowance, 0.0) + parts[key]


def split(total: float, weights: Mapping[str, float], caps: Mapping[str, float]) -> dict[str, float]:
    """Split ``total`` by weight, to none more than its cap; what a cap leaves goes to the others."""
    parts: dict[str, float] = {}
    # Whoever needs least for its weight is served first: all before it were capped, so the rest is known.
    for key in sorted(weights, key=lambda key: (caps[key] / weights[key], key)):
        rest = sum(weight for other, weight in weights.items() if other not in parts)
        parts[key] = min(caps[key], (total - sum(parts.values())) * weights[key] / rest)
    return parts
