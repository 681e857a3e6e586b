"""How the cores of a node are shared: the shortest first, and enough for those that would end the sweep. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from controllers.core.actions import Proposal, Resize
from controllers.core.model import TrialId
from controllers.policies.ahead.forecast import NodeForecast
from controllers.policies.kit.allocation import allocate
from controllers.policies.kit.shares import SharedNode
from controllers.policies.kit.work_left import Estimate

LATE: Final = 1.02
"""A node is late if its last trial ends later than this many times the sweep's earliest end."""
HEADROOM: Final = 1.1
"""A trial gets this many times the cores that are worth offering to it: it may be able to use a little more."""
MARGIN: Final = 1.02
"""A trial that would end the sweep keeps this many times the speed at which it would end just in time."""
LEAST_OF_NODE: Final = 0.02
"""A request changes by at least this part of what the node's trials may share."""


class LinePosition(IntEnum):
    """Who comes first in a node's line.

    A new trial is awaited: its first report tells how much work it is. A silent one has not reported for so long that
    nobody waits for it: it has an even part.
    """

    NEW = 0
    IN_LINE = 1
    ENDS_LAST = 2
    SILENT = 3


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the cores of every node are shared by.

    ``power`` is p of speed ~ cores ** p. ``end`` is how many seconds from now the sweep can end at the earliest. A
    trial that needs ``critical`` of that time at its most cores would end last, if its node is late. ``floor`` is the
    part of a node that all of its trials share evenly. ``new`` are the trials whose first report is awaited, ``silent``
    those that do not report. ``even`` tells that all trials of a node get the same.
    """

    estimates: Mapping[TrialId, Estimate]
    power: float
    end: float
    critical: float
    floor: float
    new: frozenset[TrialId]
    silent: frozenset[TrialId]
    even: bool = False

    def proposals(
        self, node: SharedNode, cores: float, forecast: NodeForecast, min_change: float, min_cpu: float
    ) -> list[Proposal]:
        """Return the resizes that give each trial of ``node`` its part of the ``cores``; small changes are left out."""
        line = self.line(node.names, cores, forecast)
        shares = self.shares(line, cores, forecast)
        total = sum(shares.values())
        if total <= 0 or node.budget <= 0:
            return []
        parts = {name: share / total for name, share in shares.items()}
        resizes: list[Proposal] = []
        for name, cpu in node.requests(parts, min_change, min_cpu).items():
            trial = self.estimates[name].trial
            if abs(cpu - trial.cpu) * len(trial.nodes) >= LEAST_OF_NODE * node.budget:
                resizes.append(Proposal(Resize(name, cpu), self._reason(name, line)))
        return resizes

    def line(self, names: Sequence[TrialId], cores: float, forecast: NodeForecast) -> dict[TrialId, LinePosition]:
        """Return where the trials of a node stand, the first in line first.

        First those whose report is awaited, in the order of submission; then by work left, least first; last those
        that would end the sweep, though they keep what they need.
        """
        late = forecast.last > LATE * self.end
        standings = {name: self._standing(name, cores, late=late) for name in names}

        def rank(name: TrialId) -> tuple[LinePosition, float, TrialId]:
            estimate = self.estimates[name]
            return (
                standings[name],
                estimate.trial.submitted_at if standings[name] is LinePosition.NEW else estimate.work,
                name,
            )

        return {name: standings[name] for name in sorted(names, key=rank)}

    def shares(
        self, line: Mapping[TrialId, LinePosition], cores: float, forecast: NodeForecast
    ) -> dict[TrialId, float]:
        """Return the cores of each trial of a node; together about all that there are."""
        if self.even:
            return dict.fromkeys(line, cores / len(line))
        mosts = {name: HEADROOM * min(self.estimates[name].worth_offering, cores) for name in line}
        even = cores / len(line)
        shares = {name: even if line[name] is LinePosition.SILENT else self.floor * even for name in line}
        left = cores - sum(shares.values())

        def give(name: TrialId, most: float) -> None:
            nonlocal left
            more = max(0.0, min(most - shares[name], left))
            shares[name] += more
            left -= more

        for name, standing in reversed(list(line.items())):  # the longest first: with it, the sweep ends
            if standing is LinePosition.ENDS_LAST:
                give(name, min(mosts[name], self._cores_needed(name)))
        for name, standing in line.items():
            if standing is LinePosition.NEW:
                give(name, mosts[name])
        in_line = [name for name, standing in line.items() if standing is LinePosition.IN_LINE]
        room = [max(0.0, mosts[name] - shares[name]) for name in in_line]
        for name, more in zip(in_line, allocate(room, max(0.0, left), forecast.exponent), strict=True):
            give(name, shares[name] + more)
        for name in line:
            give(name, mosts[name])  # what those before them cannot use
        return shares

    def _cores_needed(self, name: TrialId) -> float:
        """Return the cores with which the trial ends just when the sweep can end at the earliest."""
        return math.pow(MARGIN * self.estimates[name].work / self.end, 1 / self.power)

    def _standing(self, name: TrialId, cores: float, *, late: bool) -> LinePosition:
        estimate = self.estimates[name]
        if name in self.new:
            return LinePosition.NEW
        if name in self.silent:
            return LinePosition.SILENT
        alone = estimate.work / min(estimate.most, cores) ** self.power
        last = late and estimate.dependable and alone >= self.critical * self.end
        return LinePosition.ENDS_LAST if last else LinePosition.IN_LINE

    def _reason(self, name: TrialId, line: Mapping[TrialId, LinePosition]) -> str:
        if self.even:
            return "sharing evenly: behind what the default scheduler would have come to"
        why = {
            LinePosition.NEW: "its first report is awaited",
            LinePosition.IN_LINE: f"{self.estimates[name].work:.0f} core seconds are left",
            LinePosition.ENDS_LAST: "it keeps what it needs, as the sweep ends with it",
            LinePosition.SILENT: "it does not report",
        }[line[name]]
        return f"sharing: number {list(line).index(name) + 1} of {len(line)}, {why}"
