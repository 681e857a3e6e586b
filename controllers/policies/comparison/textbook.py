"""A textbook's disciplines, for comparison: first in first out, fair share, earliest deadline first."""

from collections.abc import Callable
from typing import Any, ClassVar

from controllers.core.actions import Action, Decision, Place, Proposal, Resize
from controllers.core.model import Snapshot, Trial
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.places import admit_trials, by_deadline
from controllers.policies.kit.settings import NoState, Stateless
from controllers.policies.kit.shares import shared_nodes, shrinks_first

NEXT_IN_LINE = 0.01
"""Share of each trial as a part of the one before it: near enough to nothing, yet no trial stands still."""
MIN_CPU = 0.01
MIN_CHANGE = 0.05
Rank = Callable[[Trial], Any]


def in_order(snapshot: Snapshot, rank: Rank, reason: str) -> tuple[Proposal, ...]:
    """Return the resizes that give each node's CPU to the trial of least ``rank``; what it can't use, the next may."""
    resizes: list[Proposal] = []
    for node in shared_nodes(snapshot).values():
        line = [trial.id for trial in sorted(node.members, key=lambda trial: (rank(trial), trial.id))]
        weights = {name: NEXT_IN_LINE**place for place, name in enumerate(line)}
        total = sum(weights.values())
        floor = min(1.0, len(line) * MIN_CPU / node.budget) if node.budget else 1.0
        shares = {name: floor / len(line) + (1 - floor) * weight / total for name, weight in weights.items()}
        for name, cpu in node.requests(shares, MIN_CHANGE, MIN_CPU).items():
            place = f"number {line.index(name) + 1} of {len(line)}"
            resizes.append(Proposal(Resize(name, cpu), f"{reason}: {place}"))
    return shrinks_first(resizes, snapshot)


class Fifo(Stateless):
    """Runs the trials of a node one after the other, as they were submitted."""

    name: ClassVar[str] = "fifo"
    summary: ClassVar[str] = "trains the trials of a node to their end one by one, the first submitted first"
    source: ClassVar[str] = "a textbook's; for comparison"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})
    shares: ClassVar[str] = "all to the one submitted first"

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Give each node to the trial that was submitted first."""
        return Decision(state, in_order(snapshot, lambda trial: trial.submitted_at, "first come, first served"))


class FairShare(Stateless):
    """Splits what the trials of a node asked for into equal parts."""

    name: ClassVar[str] = "fair-share"
    summary: ClassVar[str] = "gives every trial of a node the same CPU, whatever its author asked for"
    source: ClassVar[str] = "a textbook's (processor sharing); for comparison"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})
    shares: ClassVar[str] = "the same for all"

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Make the requests of each node's trials equal."""
        resizes: list[Proposal] = []
        for node in shared_nodes(snapshot).values():
            even = dict.fromkeys(node.names, 1 / len(node.members))
            for name, cpu in node.requests(even, MIN_CHANGE, MIN_CPU).items():
                resizes.append(Proposal(Resize(name, cpu), f"fair share: one of {len(node.members)}"))
        return Decision(state, shrinks_first(resizes, snapshot))


class Edf(Stateless):
    """Lets waiting trials start in the order of their deadlines, each with the CPU that its author asked for."""

    name: ClassVar[str] = "edf"
    summary: ClassVar[str] = "starts waiting trials in the order of their deadlines, with the CPU they asked for"
    source: ClassVar[str] = "a textbook's; for comparison"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place})
    goal: ClassVar[str] = "deadline"
    placement: ClassVar[str] = "the earliest deadline first, to the node with the most cores to spare"

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Place the trials that wait where there is room."""
        capacity = Capacity.of(snapshot)
        places = admit_trials(snapshot, capacity, by_deadline, lambda _: "its deadline is the earliest that fits")
        return Decision(state, tuple(places))
