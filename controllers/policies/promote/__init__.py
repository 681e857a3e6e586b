"""The policy promote: whose trials go on, by how they compare at rungs of their own training."""

from controllers.policies.promote.policy import Promote as Promote

__all__ = ["Promote"]
