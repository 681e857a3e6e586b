"""Longest remaining first on each node, for comparison."""

from typing import ClassVar

from pydantic import Field

from controllers.core.model import Decision, Snapshot
from controllers.policies.comparison.clairvoyant import Clairvoyant
from controllers.policies.kit.order_shares import in_order
from controllers.policies.kit.stateless import NoState


class LongestRemaining(Clairvoyant):
    """Gives each node to the trial that will be done last."""

    name: ClassVar[str] = "longest-remaining"
    summary: ClassVar[str] = "trains on each node the trial with the most left to do; only in the simulator"
    source: ClassVar[str] = "a textbook's (LRPT); for comparison"
    shares: ClassVar[str] = "all to the one with the most left"

    interval: float = Field(default=30.0, gt=0, description="seconds after which the order is looked at again")

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Order each node's trials by what they have left, most first."""
        proposals = in_order(snapshot, lambda trial: -self.remaining(trial), "longest remaining first")
        # The longest does not stay the longest while it alone is trained.
        live = any(trial.live for trial in snapshot.trials)
        return Decision(state, proposals, wake_at=snapshot.now + self.interval if live else None)
