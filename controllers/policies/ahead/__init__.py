"""Ahead: share, place and move by the work that each trial has left."""

from controllers.policies.ahead.policy import Ahead

__all__ = ["Ahead"]
