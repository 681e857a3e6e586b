"""FlowCon 1.0: elastic shares on each node (thesis ch. 4.1 and 5.1, Algorithms 1 and 2)."""

from typing import ClassVar

from controllers.core.model import Action, Decision, Resize, Snapshot
from controllers.policies.flowcon.rule import FlowConRule
from controllers.policies.flowcon.state import FlowConState


class FlowCon(FlowConRule):
    """FlowCon's share rule alone: trials stay where the scheduler placed them."""

    name: ClassVar[str] = "flowcon"
    summary: ClassVar[str] = "gives the CPU of a node to the trials that still improve, in place"
    source: ClassVar[str] = "thesis ch. 4.1 and 5.1, Algorithms 1 and 2"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})
    shares: ClassVar[str] = "by growth efficiency"

    @property
    def state_type(self) -> type[FlowConState]:
        """Type of the state."""
        return FlowConState

    def initial(self) -> FlowConState:
        """Return the state before the first decision."""
        return FlowConState()

    def decide(self, snapshot: Snapshot, state: FlowConState) -> Decision[FlowConState]:
        """Run on every node that is due, or whose trials have changed."""
        return self.share(snapshot, state)
