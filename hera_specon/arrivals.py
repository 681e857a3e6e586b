"""When the trials of a sweep are submitted, as the published experiments do it."""

from dataclasses import dataclass
from random import Random
from typing import Protocol

from hera_specon.amounts import is_finite
from hera_specon.errors import SweepError


class Arrivals(Protocol):
    """How long each trial waits after the sweep's start."""

    def delays(self, trials: int) -> tuple[float, ...]:
        """Return seconds to wait, one for each trial in order."""
        ...


@dataclass(frozen=True, slots=True)
class Every:
    """One trial each ``interval`` seconds, the first at once."""

    interval: float

    def __post_init__(self) -> None:
        _check_seconds("every()", self.interval)

    def delays(self, trials: int) -> tuple[float, ...]:
        """Return 0, one interval, two intervals and so on."""
        return tuple(number * self.interval for number in range(trials))


@dataclass(frozen=True, slots=True)
class AtRandom:
    """Each trial at a moment of its own, evenly spread over ``within`` seconds."""

    within: float
    seed: int = 0

    def __post_init__(self) -> None:
        _check_seconds("at_random()", self.within)

    def delays(self, trials: int) -> tuple[float, ...]:
        """Return delays to a tenth of a second; the same seed gives the same ones."""
        chance = Random(self.seed)  # noqa: S311 - repeatable, guards no secret
        return tuple(round(chance.uniform(0.0, self.within), 1) for _ in range(trials))


def every(interval: float) -> Every:
    """Return arrivals ``interval`` seconds apart.

    Raises:
        SweepError: ``interval`` is not a finite number above 0.
    """
    return Every(interval)


def at_random(within: float, seed: int = 0) -> AtRandom:
    """Return arrivals spread at random over ``within`` seconds.

    Raises:
        SweepError: ``within`` is not a finite number above 0.
    """
    return AtRandom(within, seed)


def _check_seconds(what: str, seconds: object) -> None:
    if not is_finite(seconds) or seconds <= 0:
        problem = f"{what} takes seconds above 0, not {seconds!r}"
        raise SweepError(problem)
