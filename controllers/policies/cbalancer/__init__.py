"""C-Balancer: placement by measured contention."""

from controllers.policies.cbalancer.policy import CBalancer

__all__ = ["CBalancer"]
