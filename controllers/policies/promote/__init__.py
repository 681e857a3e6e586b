"""The policy promote: whose trials go on, by how they compare at rungs of their own training."""

from controllers.policies.promote.policy import FIRST_RUNG as FIRST_RUNG
from controllers.policies.promote.policy import Promote as Promote

__all__ = ["FIRST_RUNG", "Promote"]
