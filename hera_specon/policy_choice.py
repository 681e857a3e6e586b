"""What an author may write as a sweep's policy, as the one string that travels with it."""

from collections.abc import Sequence
from typing import Any

from controllers.policies.base import Policy

PolicyChoice = str | Policy[Any] | Sequence[Policy[Any]]
"""A policy, several stacked, or a spec string such as ``specon:alpha=0.01,interval=30``."""


def policy_text(policy: PolicyChoice) -> str:
    """Return the spec string of ``policy``; a string is checked and put into its usual form."""
    from controllers.policies.registry import parse_policy, policy_spec

    return policy_spec(parse_policy(policy) if isinstance(policy, str) else policy)
