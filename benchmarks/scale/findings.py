"""What a measurement found: times of ticks, memory, what was decided. From readings of the controller's own metrics."""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.scale.size import Size
from benchmarks.scale.steering import Reading

_TICK = "specon_tick_duration_seconds"


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the machine was: its mean load, and CPU seconds per second of the other parts of the measurement."""

    machine: float
    processes: dict[str, float]


@dataclass(frozen=True, slots=True)
class Findings:
    """Seconds and bytes. A tick is one look at one sweep with its decision and what follows from it.

    ``tick_p50`` and ``tick_p95`` are as exact as the histogram's buckets. ``tick_most`` is the longest mean between two
    readings a second apart; ``tick_under`` the share of ticks that took less than a second, ``tick_cpu`` the CPU time
    of the ticking thread for each, with its looks in between. ``cores`` is what the
    controller used, ``start`` how long it took until it had looked at all. ``kept_waiting`` is the share of its ticking
    thread's time that other processes of the machine had the core. ``moves_completed`` are the next attempts that were
    bound to a node, ``moves_told`` the controller's own Events of moves that it saw to be over.
    """

    size: Size
    start: float
    start_cpu: float
    ticks: int
    tick_mean: float
    tick_p50: float
    tick_p95: float
    tick_most: float
    tick_under: float
    tick_cpu: float
    cores: float
    kept_waiting: float
    memory: int
    memory_most: int
    actions: dict[str, int]
    moves_completed: int
    moves_told: int
    points: int
    load: Load

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ticks:
    """Ticks between two readings."""

    number: int
    seconds: float
    under: int

    @classmethod
    def between(cls, before: Reading, after: Reading) -> "Ticks":
        """Return what was counted from one reading to the other."""
        count, total, under = (
            after[key] - before[key] for key in (f"{_TICK}_count", f"{_TICK}_sum", f"{_TICK}_bucket/1.0")
        )
        return cls(round(count), total, round(under))


def tick_most(readings: Sequence[Reading]) -> float:
    """Return the longest tick as far as readings tell: the greatest mean between two of them."""
    steps = [Ticks.between(before, after) for before, after in itertools.pairwise(readings)]
    return max((step.seconds / step.number for step in steps if step.number), default=0.0)


def tick_quantile(share: float, before: Reading, after: Reading) -> float:
    """Return the seconds that this share of the ticks between two readings took at most.

    Ticks are taken to be spread evenly over a bucket of the histogram, as Prometheus' histogram_quantile does.
    """
    prefix = f"{_TICK}_bucket/"
    upto = sorted((float(n.removeprefix(prefix)), after[n] - before[n]) for n in after.values if n.startswith(prefix))
    wanted = share * upto[-1][1] if upto else 0.0
    low, below = 0.0, 0.0
    for high, count in upto:
        if count >= wanted and count > below:
            return low if high == math.inf else low + (high - low) * (wanted - below) / (count - below)
        low, below = high, count
    return 0.0


def actions(before: Reading, after: Reading) -> dict[str, int]:
    """Return how many actions of each kind and outcome there were."""
    found = {
        name: round(after[name] - before[name]) for name in after.values if name.startswith("specon_actions_total/")
    }
    return {name.partition("/")[2]: number for name, number in sorted(found.items()) if number}


def summed_up(size: Size, readings: Sequence[Reading], start: float, rest: dict[str, Any]) -> Findings:
    """Return the findings; the first reading is that of the controller when it had just begun to steer."""
    first, last = readings[0], readings[-1]
    ticks = Ticks.between(first, last)
    return Findings(
        size=size,
        start=start,
        start_cpu=first.cpu,
        ticks=ticks.number,
        tick_mean=ticks.seconds / ticks.number if ticks.number else 0.0,
        tick_p50=tick_quantile(0.5, first, last),
        tick_p95=tick_quantile(0.95, first, last),
        tick_most=tick_most(readings),
        tick_under=ticks.under / ticks.number if ticks.number else 0.0,
        tick_cpu=(last.ran - first.ran) / ticks.number if ticks.number else 0.0,
        cores=(last.cpu - first.cpu) / (last.at - first.at),
        kept_waiting=_kept_waiting(first, last),
        memory=round(statistics.median(reading.memory for reading in readings)),
        memory_most=max(reading.memory for reading in readings),
        actions=actions(first, last),
        **rest,
    )


def _kept_waiting(first: Reading, last: Reading) -> float:
    ran, waited = last.ran - first.ran, last.waited - first.waited
    return waited / (ran + waited) if ran + waited else 0.0
