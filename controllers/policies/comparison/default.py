"""The baseline: trials stay where the scheduler put them, with the share their author asked for."""

from typing import ClassVar

from controllers.core.model import Action, Decision, Snapshot
from controllers.policies.kit.stateless import NoState, Stateless


class Default(Stateless):
    """Does nothing, as the thesis's NA (ch. 6.1) and DS (ch. 6.2)."""

    name: ClassVar[str] = "default"
    summary: ClassVar[str] = "leaves every trial where the scheduler placed it, with the CPU it asked for"
    source: ClassVar[str] = "thesis ch. 6 (NA, DS)"
    needs: ClassVar[frozenset[type[Action]]] = frozenset()

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:  # noqa: ARG002 - Policy's shape
        """Return no action, whatever happens."""
        return Decision(state)
