"""Shortest remaining first on each node, for comparison: on one machine nothing has a better mean.

Schrage, "A proof of the optimality of the shortest remaining processing time discipline", Operations Research 16, 1968.
"""

from typing import ClassVar

from controllers.core.model import Decision, Snapshot
from controllers.policies.comparison.clairvoyant import Clairvoyant
from controllers.policies.kit.order_shares import in_order
from controllers.policies.kit.stateless import NoState


class ShortestRemaining(Clairvoyant):
    """Gives each node to the trial that will be done first."""

    name: ClassVar[str] = "shortest-remaining"
    summary: ClassVar[str] = "trains on each node the trial with the least left to do; only in the simulator"
    source: ClassVar[str] = "Schrage 1968 (SRPT); for comparison"
    shares: ClassVar[str] = "all to the one with the least left"

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Order each node's trials by what they have left, least first."""
        return Decision(state, in_order(snapshot, self.remaining, "shortest remaining first"))
