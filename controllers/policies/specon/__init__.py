"""SpeCon: send converged trials away from those that still grow."""

from controllers.policies.specon.policy import SpeCon

__all__ = ["SpeCon"]
