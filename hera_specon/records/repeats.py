"""A sweep that ran several times under each policy: what can be told of the difference, beside chance. Pure."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controllers.core.results import RunResult

_NUMBER: Final = re.compile(r" #\d+$")


@dataclass(frozen=True, slots=True)
class RatioRange:
    """A ratio to the baseline, and the range that holds the true one 95 times of 100; below 1 is a gain."""

    ratio: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether chance alone is unlikely to have made the difference."""
        return self.high < 1 or self.low > 1


@dataclass(frozen=True, slots=True)
class Repeated:
    """All runs under one policy; the ratios are None for the baseline, and where there are fewer than two pairs.

    ``idle`` tells that in none of them the policy did anything that the baseline did not.
    """

    policy: str
    runs: tuple[RunResult, ...]
    makespan: RatioRange | None = None
    mean_completion: RatioRange | None = None
    idle: bool = False

    @property
    def verdict(self) -> str:
        """What the makespans say, in words; empty for the baseline."""
        if self.idle:
            return "no action was taken: the difference is noise"
        if self.makespan is None:
            return ""
        if not self.makespan.significant:
            return "no difference that chance could not make"
        return "faster" if self.makespan.ratio < 1 else "slower"


def number_repeats(names: Sequence[str]) -> list[str]:
    """Return ``names`` with a number at each that comes again: ``ahead``, ``ahead #2``."""
    seen: dict[str, int] = {}
    told = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        told.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return told


def groups(results: Sequence[RunResult]) -> Mapping[str, list[RunResult]]:
    """Return the runs under each policy, in order; they are told apart as ``number_repeats`` does."""
    by_policy: dict[str, list[RunResult]] = {}
    for result in results:
        by_policy.setdefault(_NUMBER.sub("", result.policy), []).append(result)
    return by_policy


def compare_repeats(results: Sequence[RunResult], idle: Callable[[RunResult, RunResult], bool]) -> list[Repeated]:
    """Return a row for each policy, set beside the first one run by run; empty where no policy ran twice.

    Args:
        results: All runs.
        idle: Tells whether a run did nothing that its baseline did not.
    """
    by_policy = groups(results)
    if all(len(runs) < 2 for runs in by_policy.values()):  # noqa: PLR2004 - twice
        return []
    (first, baseline), *others = by_policy.items()
    rows = [Repeated(first, tuple(baseline))]
    for policy, runs in others:
        pairs = list(zip(baseline, runs, strict=False))
        makespan = ratio_range([after.makespan_s / before.makespan_s for before, after in pairs])
        mean = ratio_range([after.mean_completion_s / before.mean_completion_s for before, after in pairs])
        rows.append(Repeated(policy, tuple(runs), makespan, mean, all(idle(*pair) for pair in pairs)))
    return rows


def ratio_range(ratios: Sequence[float]) -> RatioRange | None:
    """Return the geometric mean of ``ratios``, with Student's t range of their logarithms; None of fewer than two."""
    if len(ratios) < 2:  # noqa: PLR2004 - one tells nothing of chance
        return None
    from controllers.lab.simulation.evaluation import estimate  # noqa: PLC0415 - it takes half a second, and few repeat

    told = estimate([math.log(ratio) for ratio in ratios])
    low, high = told.ci95 or (-math.inf, math.inf)
    return RatioRange(math.exp(told.mean), math.exp(low), math.exp(high))
