"""Deadlines instead of resource requests."""

from controllers.policies.deadline.policy import Deadline

__all__ = ["Deadline"]
