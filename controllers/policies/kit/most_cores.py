"""How many cores a trial is taken to be able to use: as far as it has not shown it, others tell. Pure."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

UNUSED: Final = 0.9
"""A trial that uses less than this part of what its weight entitles it to cannot use more."""
GROWTH: Final = 2.0
"""A trial that always used all that it was given may be able to use this many times as many cores."""
LEAST: Final = 1e-3
LEAST_ASKED: Final = 1e-6
"""A request of fewer cores asks for none."""
FEW: Final = 3
"""So many trials must have shown how many cores they can use before the requests of other trials tell theirs."""
LIKE_REQUESTS: Final = 0.1
"""Requests tell what trials can use if the quotients of both scatter by no more than this."""


@dataclass(frozen=True, slots=True)
class Use:
    """The cores that a trial's author asked for, the most that it ``used``, and the ``most`` that it can use.

    The latter is None while it has used all that it was given. ``in_doubt`` tells that it is to be tried again.
    ``threads`` is with how many it was told to compute, 0 where nobody told it.
    """

    asked: float
    used: float
    most: float | None
    in_doubt: bool = False
    threads: int = 0


class Most(NamedTuple):
    """The ``cores`` that a trial is taken to be able to use, and those ``worth_offering``, as it may use more."""

    cores: float
    worth_offering: float


def most_of_each(uses: Sequence[Use], largest: float) -> list[Most]:
    """Return how many cores each trial is taken to be able to use; the ``largest`` node has so many.

    Where authors ask for unlike cores, and trials that have shown what they can use can all use the same part of that,
    then the others can, too. Otherwise a trial is one of those that can use as many as it did; one that was told how
    many threads it has uses no more cores than these, until it does.
    """
    told = sorted(use.most for use in uses if use.most is not None)
    parts = [use.most / use.asked for use in uses if use.most is not None and use.asked >= LEAST_ASKED]
    part = _same_part(parts) if len({use.asked for use in uses if use.most is not None}) > 1 else None
    mosts: list[Most] = []
    for use in uses:
        if use.most is not None:
            most = use.most
            offer = GROWTH * use.most if use.in_doubt else use.most
        elif part is not None and UNUSED * use.used <= part * use.asked:
            most = offer = max(use.used, part * use.asked)
        else:
            most = _of_others(use.used, told, largest)
            offer = max(most, GROWTH * use.used)
            if use.threads > 0 and UNUSED * use.used <= use.threads:
                most, offer = min(most, use.threads), min(offer, use.threads)
        mosts.append(Most(max(most, LEAST), max(offer, LEAST)))
    return mosts


def _same_part(parts: Sequence[float]) -> float | None:
    """Return the part of their requests that all trials can use; None where it is not the same for all."""
    if len(parts) < FEW or min(parts) <= 0:
        return None
    return statistics.median(parts) if statistics.pstdev(map(math.log, parts)) <= LIKE_REQUESTS else None


def _of_others(used: float, told: Sequence[float], largest: float) -> float:
    """Return the cores that a trial may be able to use which used all that it was given, ``used`` at most.

    It is among those that can use as many: the median of these, of what others ``told``, rising. Where none of them
    could use so many, the trial's own use is all there is. Before any told, it may use the ``largest`` node.
    """
    if not told:
        return max(largest, used)
    first, last = bisect_left(told, UNUSED * used), len(told) - 1
    return used if first > last else max(used, (told[(first + last) // 2] + told[(first + last + 1) // 2]) / 2)
