"""Fair share, for comparison: every trial of a node gets the same, whatever it asked for."""

from typing import ClassVar

from controllers.core.model import Action, Decision, Resize, Snapshot
from controllers.policies.kit.order_shares import evenly
from controllers.policies.kit.stateless import NoState, Stateless


class FairShare(Stateless):
    """Splits what the trials of a node asked for into equal parts."""

    name: ClassVar[str] = "fair-share"
    summary: ClassVar[str] = "gives every trial of a node the same CPU, whatever its author asked for"
    source: ClassVar[str] = "a textbook's (processor sharing); for comparison"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})
    shares: ClassVar[str] = "the same for all"

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Make the requests of each node's trials equal."""
        return Decision(state, evenly(snapshot, "fair share"))
