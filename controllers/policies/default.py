"""The baseline: trials stay where the scheduler put them, with the share their author asked for."""

from dataclasses import dataclass
from typing import ClassVar

from controllers.model import Action, Decision, Snapshot
from controllers.policies.settings import PolicySettings


@dataclass(frozen=True, slots=True)
class DefaultState:
    """Nothing to remember."""


class Default(PolicySettings):
    """Does nothing, as the thesis's NA (ch. 6.1) and DS (ch. 6.2)."""

    name: ClassVar[str] = "default"
    summary: ClassVar[str] = "leaves every trial where the scheduler placed it, with the CPU it asked for"
    source: ClassVar[str] = "thesis ch. 6 (NA, DS)"
    needs: ClassVar[frozenset[type[Action]]] = frozenset()

    @property
    def state_type(self) -> type[DefaultState]:
        """Type of the state."""
        return DefaultState

    def initial(self) -> DefaultState:
        """Return the state before the first decision."""
        return DefaultState()

    def decide(self, snapshot: Snapshot, state: DefaultState) -> Decision[DefaultState]:  # noqa: ARG002 - Policy's shape
        """Return no action, whatever happens."""
        return Decision(state)
