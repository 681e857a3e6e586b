"""One way to look at the policies within a policy."""

from collections.abc import Iterator
from typing import Any

from controllers.core.policy import Policy
from controllers.policies.kit.settings import PolicySettings
from controllers.policies.wrappers.guarded import Guarded
from controllers.policies.wrappers.pinned import Pinned
from controllers.policies.wrappers.stacked import Stacked


def parts(policy: Policy[Any]) -> Iterator[Policy[Any]]:
    """Yield the policies that decide within ``policy``, in their order: itself where it is no wrapper."""
    if isinstance(policy, Guarded | Pinned):
        yield from parts(policy.policy)
    elif isinstance(policy, Stacked):
        for inner in policy.policies:
            yield from parts(inner)
    else:
        yield policy


def most_moves(policy: Policy[Any]) -> int | None:
    """Return how many moves of one trial ``policy`` makes at most; None where that has no limit or nobody knows."""
    total = 0
    for part in parts(policy):
        if not isinstance(part, PolicySettings) or part.most_moves is None:
            return None
        total += part.most_moves
    return total
