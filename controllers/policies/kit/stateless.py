"""Policies that remember nothing between two decisions."""

from dataclasses import dataclass

from controllers.policies.kit.settings import PolicySettings


@dataclass(frozen=True, slots=True)
class NoState:
    """Nothing to remember."""


class Stateless(PolicySettings):
    """Base of policies that look at the snapshot alone."""

    @property
    def state_type(self) -> type[NoState]:
        """Type of the state."""
        return NoState

    def initial(self) -> NoState:
        """Return the state before the first decision."""
        return NoState()
