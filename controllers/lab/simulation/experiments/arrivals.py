"""When the trials of an experiment are submitted. Seconds from the start, in the order of submission."""

import math
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Protocol

from controllers.worlds.simulated.errors import WorkloadError


class ArrivalPattern(Protocol):
    """A pattern of submissions."""

    def times(self, trials: int, chance: Random) -> tuple[float, ...]:
        """Return the submission of each of ``trials`` trials, in order; ``chance`` draws what is random."""
        ...


@dataclass(frozen=True, slots=True)
class AllAtOnce:
    """Everything at 0, as a sweep without arrivals."""

    def times(self, trials: int, chance: Random) -> tuple[float, ...]:  # noqa: ARG002 - ArrivalPattern' shape
        """Return 0 for each trial."""
        return (0.0,) * trials


@dataclass(frozen=True, slots=True)
class FixedInterval:
    """One trial ``every_s`` seconds, the first at 0: the thesis's fixed schedule (ch. 6.2.2)."""

    every_s: float

    def __post_init__(self) -> None:
        _check("a fixed interval", self.every_s)

    def times(self, trials: int, chance: Random) -> tuple[float, ...]:  # noqa: ARG002 - ArrivalPattern' shape
        """Return multiples of the interval."""
        return tuple(number * self.every_s for number in range(trials))


@dataclass(frozen=True, slots=True)
class UniformWindow:
    """Each trial at a moment of its own ``within_s`` seconds: the thesis's random schedule (ch. 6.1.4, 6.2.3)."""

    within_s: float

    def __post_init__(self) -> None:
        _check("a window", self.within_s)

    def times(self, trials: int, chance: Random) -> tuple[float, ...]:
        """Return moments drawn evenly, in order."""
        return tuple(sorted(chance.uniform(0.0, self.within_s) for _ in range(trials)))


@dataclass(frozen=True, slots=True)
class Poisson:
    """Submissions that know nothing of one another, on average ``mean_interval`` seconds apart."""

    mean_interval: float

    def __post_init__(self) -> None:
        _check("a mean interval", self.mean_interval)

    def times(self, trials: int, chance: Random) -> tuple[float, ...]:
        """Return the first at 0 and then sums of exponential waits."""
        waits = (chance.expovariate(1 / self.mean_interval) for _ in range(trials - 1))
        return tuple(accumulate(waits, initial=0.0)) if trials else ()


@dataclass(frozen=True, slots=True)
class Trace:
    """Submissions as they were once recorded, ``at_s`` seconds: rising, from 0 up."""

    at_s: tuple[float, ...]

    def __post_init__(self) -> None:
        before = 0.0
        for number, at in enumerate(self.at_s, start=1):
            if not (math.isfinite(at) and at >= before):
                message = f"a trace must rise from 0: submission {number} is at {at} s, after {before} s"
                raise WorkloadError(message)
            before = at

    def times(self, trials: int, chance: Random) -> tuple[float, ...]:  # noqa: ARG002 - ArrivalPattern' shape
        """Return the first ``trials`` moments of the trace.

        Raises:
            WorkloadError: The trace has fewer.
        """
        if trials > len(self.at_s):
            message = f"a trace of {len(self.at_s)} submissions is too short for {trials} trials"
            raise WorkloadError(message)
        return self.at_s[:trials]


def generator(seed: int, *what: object) -> Random:
    """Return a generator for one purpose of one seed: what is drawn for another purpose changes nothing here."""
    return Random(":".join(map(str, (seed, *what))))  # noqa: S311 - repeatable, guards no secret


def _check(what: str, seconds: float) -> None:
    if not (math.isfinite(seconds) and seconds > 0):
        message = f"{what} must be a finite number of seconds above 0, not {seconds}"
        raise WorkloadError(message)
