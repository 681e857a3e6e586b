"""What an author may write as a sweep's policy, as the one string that travels with it."""

from collections.abc import Sequence
from typing import Any

from controllers.core.policy import Policy
from controllers.policies.registry import parse_policy, policy_spec
from controllers.policies.wrappers.wrapper import Wrapper

PolicyChoice = str | Policy[Any] | Sequence[Policy[Any]]
"""A policy, several stacked, or a spec string such as ``specon:alpha=0.01,interval=30``."""


def policy_text(policy: PolicyChoice) -> str:
    """Return the spec string of ``policy``; a string is checked and put into its usual form.

    Raises:
        UnknownPolicyError: There is no such policy, or one comes twice.
        PolicyParameterError: A parameter is unknown or out of bounds.
    """
    if not isinstance(policy, str | Sequence):
        return policy_spec(policy)
    stack = policy if isinstance(policy, str) else Wrapper.separator.join(map(policy_spec, policy))
    return policy_spec(parse_policy(stack))
