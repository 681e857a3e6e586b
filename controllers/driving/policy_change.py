"""Another policy for a sweep that runs, where its owner asks for one."""

from collections.abc import Callable
from typing import Any

from controllers.core.actions import Action
from controllers.core.errors import SpeconError
from controllers.core.policy import Policy
from controllers.driving.assembly import check_policy
from controllers.policies.registry import parse_policy

MOST_WRITTEN = 4096
"""Characters of a policy's spec string that are read: anybody may have written it."""


class PolicyChange:
    """Tells which policy steers a sweep.

    Args:
        begun: the policy that the sweep began under.
        can: the actions that its world can carry out.
        world: what that is called.
        tell: called with a line for people where a change is made, or cannot be.
        why_not: why the world cannot carry out the others.
        several: tells whether the sweep has several objectives.
    """

    def __init__(
        self,
        begun: Policy[Any],
        can: frozenset[type[Action]],
        world: str,
        tell: Callable[[str], object],
        why_not: str = "",
        several: Callable[[], bool] = lambda: False,
    ) -> None:
        self._can = can
        self._world = world
        self._tell = tell
        self._why_not = why_not
        self._several = several
        self._taken = ""
        self.policy = begun

    def take(self, spec: str) -> bool:
        """Take in what is asked for now, empty for nothing; return whether ``policy`` is another one since."""
        if not spec or spec == self._taken:
            return False
        self._taken = spec
        try:
            wanted = parse_policy(spec[:MOST_WRITTEN])
            check_policy(wanted, self._can, self._world, self._why_not, several=self._several())
        except SpeconError as error:
            self._tell(f"the policy stays {self.policy.name}: {error}")
            return False
        self.policy = wanted
        self._tell(f"the policy is {wanted.name} from now on, as its owner asked")
        return True
