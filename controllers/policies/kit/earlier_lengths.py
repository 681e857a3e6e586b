"""What trials of earlier sweeps tell of how long this sweep's trials are, and how long that is believed. Pure.

Another machine is another speed, and a program may have changed since. So what a step cost is brought to this sweep's
scale by its own trials, as soon as these tell anything. Each of them takes the place of two earlier ones. And where the
earlier ones foretell these badly, nothing of them is believed any more.
"""

import math
import statistics
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from controllers.core.earlier import Earlier
from controllers.core.model import Parameters
from controllers.policies.kit.lengths import DIGITS, Known
from controllers.policies.kit.work_by_parameters import MOST_EXAMPLES, Example, law_of, log_of

OUTWEIGHS: Final = 2
"""Earlier trials whose place each of the sweep's own takes."""
ENOUGH_TO_TELL: Final = 3
"""Own trials from whose errors on it is judged whether earlier ones foretell them."""
MOST_ERROR: Final = math.log(2)
"""Error of the logarithm, on average, beyond which they do not: as much as any guess would be out,"""
TIMES_SPREAD: Final = 2.0
"""unless earlier trials were out by as much among themselves: so many times their own spread is allowed."""


def believed_earlier(earlier: Earlier, own: Sequence[Known]) -> list[Known]:
    """Return what earlier trials tell beside the sweep's ``own``, on the scale of these; nothing that these belie."""
    names = {name for trial in own for name, _ in trial.parameters}
    telling = [trial for trial in earlier if trial.steps or trial.cost][:MOST_EXAMPLES]
    # The oldest come first: of many examples, a law looks at the last.
    told = [Known(_those(trial.parameters, names), trial.steps, trial.cost) for trial in reversed(telling)]
    if not told:
        return []
    costs, own_costs = _costs(told), _costs(own)
    scale = _scale(costs, own_costs)
    steps_hold = _foretell(_steps(told), _steps(own))
    costs_hold = _foretell([(parameters, cost + scale) for parameters, cost in costs], own_costs)
    both = sum(trial.steps is not None and trial.cost is not None for trial in own)
    return [
        replace(
            trial,
            steps=trial.steps if steps_hold else None,
            cost=trial.cost * math.exp(scale) if trial.cost is not None and costs_hold else None,
        )
        for trial in _spread_over(told, MOST_EXAMPLES - OUTWEIGHS * both)
    ]


def _those(parameters: Parameters, names: Collection[str]) -> Parameters:
    """Return those of ``parameters`` that this sweep's trials have, all before any of them has one."""
    return tuple((name, value) for name, value in parameters if name in names or not names)


def _scale(earlier: Sequence[Example], own: Sequence[Example]) -> float:
    """Return how much more a step costs here than where the earlier trials ran, as a logarithm."""
    law = law_of(earlier)
    if law is None or not own:
        return 0.0
    return statistics.median(cost - law.of(parameters)[0] for parameters, cost in own)


def _foretell(earlier: Sequence[Example], own: Sequence[Example]) -> bool:
    """Return whether the earlier trials foretell the sweep's own well enough to be believed."""
    law = law_of(earlier)
    if law is None or len(own) < ENOUGH_TO_TELL:
        return True
    error = math.sqrt(statistics.fmean((value - law.of(parameters)[0]) ** 2 for parameters, value in own))
    return error <= max(MOST_ERROR, TIMES_SPREAD * law.spread)


def _spread_over(told: Sequence[Known], most: int) -> Sequence[Known]:
    """Return at most so many of ``told``, evenly from all of them."""
    if most <= 0:
        return []
    if len(told) <= most:
        return told
    return [told[place * len(told) // most] for place in range(most)]


def _steps(trials: Sequence[Known]) -> list[Example]:
    return [(trial.parameters, log_of(trial.steps)) for trial in trials if trial.steps is not None]


def _costs(trials: Sequence[Known]) -> list[Example]:
    known = [(trial.parameters, trial.cost) for trial in trials if trial.cost is not None]
    return [(parameters, round(log_of(cost), DIGITS)) for parameters, cost in known]
