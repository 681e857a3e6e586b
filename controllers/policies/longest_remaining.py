"""Longest remaining first on each node, for comparison."""

from typing import ClassVar

from controllers.model import Decision, Snapshot
from controllers.policies.clairvoyant import Clairvoyant
from controllers.policies.order_shares import in_order
from controllers.policies.stateless import NoState


class LongestRemaining(Clairvoyant):
    """Gives each node to the trial that will be done last."""

    name: ClassVar[str] = "longest-remaining"
    summary: ClassVar[str] = "trains on each node the trial with the most left to do; only in the simulator"
    source: ClassVar[str] = "a textbook's (LRPT); for comparison"
    shares: ClassVar[str] = "all to the one with the most left"

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Order each node's trials by what they have left, most first."""
        return Decision(state, in_order(snapshot, lambda trial: -self.remaining(trial), "longest remaining first"))
