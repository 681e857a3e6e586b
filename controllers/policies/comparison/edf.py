"""Earliest deadline first, for comparison: who starts next goes by deadline, shares stay as they were asked for."""

from typing import ClassVar

from controllers.core.model import Action, Decision, Place, Snapshot
from controllers.policies.kit.admission import admitted, by_deadline
from controllers.policies.kit.capacity import Ledger
from controllers.policies.kit.stateless import NoState, Stateless


class Edf(Stateless):
    """Lets waiting trials start in the order of their deadlines, each with the CPU that its author asked for."""

    name: ClassVar[str] = "edf"
    summary: ClassVar[str] = "starts waiting trials in the order of their deadlines, with the CPU they asked for"
    source: ClassVar[str] = "a textbook's; for comparison"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place})
    goal: ClassVar[str] = "deadline"
    placement: ClassVar[str] = "the earliest deadline first, to the node with the most cores to spare"

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Place whoever waits where there is room."""
        places = admitted(
            snapshot, Ledger.of(snapshot), by_deadline, lambda _: "its deadline is the earliest that fits"
        )
        return Decision(state, tuple(places))
