"""Population based training."""

from controllers.policies.population.policy import Population as Population

__all__ = ["Population"]
