"""First in, first out, for comparison: each node trains its oldest trial, the others wait."""

from typing import ClassVar

from controllers.core.model import Action, Decision, Resize, Snapshot
from controllers.policies.kit.order_shares import in_order
from controllers.policies.kit.stateless import NoState, Stateless


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
