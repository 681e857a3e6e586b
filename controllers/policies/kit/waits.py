"""Trials that wait rather than compute: for a GPU, a disk, an environment, a server. Pure.

A step of theirs takes w + s / c seconds on c cores: it waits for w, and computes for s core seconds. They show by using
much less than they are entitled to, and less than the one core that all training can use. Others may also hold a trial
back that computes. So what uses nearly its share computes, what uses a small part of it waits, and between these
either may be true.
"""

import math
from typing import Final

ONE_CORE: Final = 1.0
"""Cores that training can always use: if it uses less, it waits, or others were in its way."""
SURELY_WAITS: Final = 0.25
"""A trial waits if it uses at most this part of what it is entitled to, or of a core if that is less."""
SURELY_COMPUTES: Final = 0.9
"""A trial computes if it uses at least this part of that."""
LEAST_USED: Final = 1e-3
"""A trial that waits counts as using so many cores at least: the work left is never next to nothing."""
LEAST_CORES: Final = 0.05
MOST_COST: Final = 1e12
"""Core seconds of a step at most: whatever trials report, their work stays finite."""
SMALL_SHARE: Final = 2.0
"""On real nodes, a trial with a small share may get so many times less than it is entitled to."""


def busy_part(used: float, entitled: float, *, small: bool) -> float:
    """Return the part that a trial ``used`` of the cores that it was ``entitled`` to, or of one core if that is less.

    ``small`` tells that its share was too small to be kept to well.
    """
    could = min(ONE_CORE, entitled)
    return used * (SMALL_SHARE if small else 1.0) / could if could > 0 else 1.0


def chance_of_waiting(busy: float | None) -> float:
    """Return how likely it is that a trial waits, by the part of its share that it used; 0 where nobody knows."""
    if busy is None:
        return 0.0
    return min(1.0, max(0.0, (SURELY_COMPUTES - busy) / (SURELY_COMPUTES - SURELY_WAITS)))


def surely_waits(busy: float | None) -> bool:
    """Return whether a trial waits rather than computes."""
    return busy is not None and busy <= SURELY_WAITS


def used_while_waiting(cores: float, busy: float | None) -> float | None:
    """Return the cores that a trial uses which waits, whatever it is given; None for one that computes.

    ``cores`` are those that it was seen to use.
    """
    return max(LEAST_USED, cores) if surely_waits(busy) else None


def work_of_step(cost: float, cores: float, busy: float | None, power: float) -> float:
    """Return the work of a step that took ``cost`` core seconds on ``cores``: what it would cost on a single core.

    More cores are less efficient where ``power`` is below 1. The work of a trial that waits, over the speed of what it
    uses, is the time that the step takes, however little it computes.
    """
    used = used_while_waiting(cores, busy)
    if used is not None and cores > 0:
        return min(math.pow(used, power) * (cost / cores), MOST_COST)
    return min(cost * math.pow(max(cores, LEAST_CORES), power - 1), MOST_COST)


def waiting_per_work(work: float, seconds: float, speed: float) -> float:
    """Return the seconds for which a trial waits in each second of work, computing at ``speed``.

    ``work`` (above 0) and ``seconds`` are those of a step.
    """
    return max(0.0, seconds / work - 1 / speed) if speed > 0 else 0.0


def speed_with_waiting(speed: float, wait: float) -> float:
    """Return the speed of a trial that waits ``wait`` seconds in each second of work, and works at ``speed`` else."""
    return speed / (1 + wait * speed) if wait and speed > 0 else speed


def cores_with_waiting(cores: float, wait: float, power: float) -> float:
    """Return the cores that such a trial uses on average where it may use ``cores``."""
    if not wait or cores <= 0:
        return cores
    return float(math.pow(speed_with_waiting(math.pow(cores, power), wait), 1 / power))
