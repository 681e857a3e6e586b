"""DQoES: shares that move towards a time per step."""

from controllers.policies.dqoes.policy import DQoES

__all__ = ["DQoES"]
