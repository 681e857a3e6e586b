"""The running trials of a node in the order in which they would leave for others, and how far down that goes. Pure."""

from collections.abc import Mapping

from controllers.core.model import TrialId
from controllers.policies.arbiter.demands import SLACK, Amount

Rank = tuple[float, bool, float]
"""How soon a trial leaves, the greatest first."""


class LeavingOrder:
    """Sums of what leaves, in trees (Fenwick's): a question or a change costs the logarithm of how many trials run.

    Args:
        there: what each trial holds of the node.
        ranks: how soon each leaves.
    """

    def __init__(self, there: Mapping[TrialId, Amount], ranks: Mapping[TrialId, Rank]) -> None:
        order = sorted(sorted(there), key=ranks.__getitem__, reverse=True)
        self._ranks = [ranks[name] for name in order]
        self._places = {name: place for place, name in enumerate(order, 1)}
        self._count = [0.0] * (len(order) + 1)
        self._sums: dict[str, list[float]] = {}
        for name in order:
            self._add(name, there[name], 1)

    def remove(self, trial: TrialId, amount: Amount) -> None:
        """Count a trial no more."""
        self._add(trial, amount, -1)

    def until(self, lacking: Amount) -> tuple[Rank, int]:
        """Return the rank of the last that has to leave for an amount, and how many that are: all if it takes more."""
        place = 0
        for resource, least in _parts(lacking):
            if least > SLACK:
                sums = self._sums.get(resource)
                place = max(place, len(self._ranks) if sums is None else _reach(sums, least - SLACK))
        leaving = round(_sum(self._count, min(place, len(self._ranks))))
        if not leaving:
            return (0.0, False, 0.0), 0
        return self._ranks[_reach(self._count, leaving - 0.5) - 1], leaving

    def _add(self, trial: TrialId, amount: Amount, sign: int) -> None:
        place = self._places[trial]
        for resource, number in (*_parts(amount), ("", 1.0)):
            sums = self._count if not resource else self._sums.setdefault(resource, [0.0] * len(self._count))
            at = place
            while number and at < len(sums):
                sums[at] += sign * number
                at += at & -at


def _parts(amount: Amount) -> list[tuple[str, float]]:
    return [("cpu", amount.cpu), ("memory", amount.memory), *((kind, float(n)) for kind, n in amount.devices.counts)]


def _reach(sums: list[float], least: float) -> int:
    """Return the first place up to which there are ``least``; one beyond the last where there are not so many."""
    place, step = 0, 1 << max(0, len(sums) - 1).bit_length()
    while step:
        if place + step < len(sums) and sums[place + step] < least:
            place += step
            least -= sums[place]
        step //= 2
    return min(place + 1, len(sums))


def _sum(sums: list[float], place: int) -> float:
    total = 0.0
    while place:
        total += sums[place]
        place -= place & -place
    return total
