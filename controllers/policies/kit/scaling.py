"""How the speed of trials depends on the cores that they have, and on how many others train beside them. Pure.

What a step of the same trial costs under unlike conditions tells it: the logarithm of a step's cost rises with that of
the cores by 1 - p, where speed is ~ cores ** p, and with each further trial by about the contention.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

KEPT_COSTS: Final = 8
"""So many unlike conditions of a trial are remembered."""
NEWEST: Final = 0.4
"""Weight of the newest measurement in a moving average."""
LIKE: Final = 0.15
"""Shares whose logarithms differ by less are taken for the same."""
DOUBT: Final = 0.5
"""Where shares spread by so much (sum of squared logarithms), the power p moves half of the way to what trials tell."""
DOUBT_OF_OTHERS: Final = 20.0
"""Where the numbers of trials on a node spread by so much (sum of squares), the contention moves half of the way."""
LEAST_POWER: Final = 0.5
MOST_POWER: Final = 1.2
"""The power p may be above 1: on small shares of busy cores, real trials spend more CPU seconds on a step. It was 1.04
to 1.09 in two sweeps."""


@dataclass(frozen=True, slots=True)
class CostOfStep:
    """What a step cost beside ``others`` trials on a node: logarithms of cores and of core seconds.

    ``entitled`` are the cores that the trial's request gives it where all want more, ``used`` those that it used.
    """

    entitled: float
    others: int
    used: float
    cost: float


@dataclass(frozen=True, slots=True)
class ScalingSums:
    """Sums of products over all that was measured of trials, each about its own mean.

    Of the entitled cores (e) or the number of others (o) with the used cores (u), the number of others (o), and the
    cost of a step (c).
    """

    eu: float = 0.0
    eo: float = 0.0
    ec: float = 0.0
    ou: float = 0.0
    oo: float = 0.0
    oc: float = 0.0


@dataclass(frozen=True, slots=True)
class Scaling:
    """How the speed of the sweep's trials depends on what they share.

    ``power`` is p of speed ~ cores ** p, ``contention`` the part of its speed that each further trial on its node costs
    a trial that has the same cores.
    """

    power: float = 1.0
    contention: float = 0.0


def with_newest(costs: Sequence[CostOfStep], new: CostOfStep) -> tuple[CostOfStep, ...]:
    """Return ``costs`` with ``new``: one for each condition, in which the newest counts most."""
    like = [cost for cost in costs if cost.others == new.others and abs(cost.entitled - new.entitled) <= LIKE]
    if like:
        old = like[-1]
        used, cost = ((1 - NEWEST) * a + NEWEST * b for a, b in ((old.used, new.used), (old.cost, new.cost)))
        new = CostOfStep(old.entitled, old.others, used, cost)
    return (*(cost for cost in costs if cost not in like), new)[-KEPT_COSTS:]


def spread_over(before: ScalingSums, trials: Iterable[Sequence[CostOfStep]]) -> ScalingSums:
    """Return ``before`` with what the costs of more ``trials`` add to it."""
    sums = [before.eu, before.eo, before.ec, before.ou, before.oo, before.oc]
    for costs in trials:
        if len(costs) > 1:
            rows = [(cost.entitled, cost.others, cost.used, cost.cost) for cost in costs]
            means = [statistics.fmean(column) for column in zip(*rows, strict=True)]
            for row in rows:
                e, o, u, c = (value - mean for value, mean in zip(row, means, strict=True))
                sums = [s + x for s, x in zip(sums, (e * u, e * o, e * c, o * u, o * o, o * c), strict=True)]
    return ScalingSums(*sums)


def scaling(told: ScalingSums) -> Scaling:
    """Return what the trials tell that were seen on unlike shares, or beside unlike numbers of others.

    Cores and cost come from the same CPU seconds, and so have errors in common. The cores that a trial was entitled to
    have no such errors: they are the instrument (Wooldridge, Econometric Analysis of Cross Section and Panel Data, ch.
    5). Doubts make the regression begin at p = 1 and no contention.
    """
    eu, oo = told.eu + DOUBT, told.oo + DOUBT_OF_OTHERS
    determinant = eu * oo - told.eo * told.ou
    if determinant <= DOUBT * DOUBT_OF_OTHERS:
        return Scaling()
    by_cores = (told.ec * oo - told.oc * told.eo) / determinant
    by_others = (told.oc * eu - told.ec * told.ou) / determinant
    return Scaling(min(MOST_POWER, max(LEAST_POWER, 1 - by_cores)), math.expm1(min(1.0, max(0.0, by_others))))
