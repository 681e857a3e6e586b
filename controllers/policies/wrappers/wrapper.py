"""What policies around policies have in common: one way to look at what is within, and to put something else there."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, SkipValidation

from controllers.core.actions import Action, Decision
from controllers.core.model import Snapshot
from controllers.core.policy import Policy
from controllers.policies.kit.settings import PolicySettings


class Wrapper(BaseModel):
    """Base of policies around other policies: its name, needs and most moves follow from theirs."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)
    separator: ClassVar[str] = "+"

    @property
    @abstractmethod
    def within(self) -> tuple[Policy[Any], ...]:
        """The policies within, in their order."""

    @abstractmethod
    def around(self, within: Sequence[Policy[Any]]) -> Self:
        """Return the same wrapper around as many other policies."""

    @property
    @abstractmethod
    def state_type(self) -> type[Any]:
        """Type of the state."""

    @abstractmethod
    def initial(self) -> Any:  # noqa: ANN401 - each policy has its own state
        """Return the state before the first decision."""

    @abstractmethod
    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - as above
        """Ask the policies within, and make of it what the wrapper is for."""

    @property
    def name(self) -> str:
        """Names of the policies within, joined by ``+``."""
        return self.separator.join(policy.name for policy in self.within)

    @property
    def needs(self) -> frozenset[type[Action]]:
        """Whatever any of the policies within needs."""
        return frozenset().union(*(policy.needs for policy in self.within))

    @property
    def most_moves(self) -> int | None:
        """As many moves of one trial as the policies within make together; None where one of them has no limit."""
        return most_moves(self)


class AroundOne(Wrapper):
    """Base of wrappers around one policy, whose state is theirs as long as they keep none of their own."""

    policy: SkipValidation[Policy[Any]]

    @property
    def within(self) -> tuple[Policy[Any], ...]:
        """The one policy."""
        return (self.policy,)

    def around(self, within: Sequence[Policy[Any]]) -> Self:
        """Return the same wrapper around another policy."""
        (policy,) = within
        return self.model_copy(update={"policy": policy})

    @property
    def state_type(self) -> type[Any]:
        """Type of the state of the policy within."""
        return self.policy.state_type

    def initial(self) -> Any:  # noqa: ANN401 - each policy has its own state
        """Return the state of the policy within before the first decision."""
        return self.policy.initial()


def parts(policy: Policy[Any]) -> Iterator[Policy[Any]]:
    """Yield the policies that decide within ``policy``, in their order: itself where it is no wrapper."""
    if not isinstance(policy, Wrapper):
        yield policy
        return
    for inner in policy.within:
        yield from parts(inner)


def one_objective_only(policy: Policy[Any]) -> str | None:
    """Return why ``policy`` takes no sweep of several objectives, None where it does."""
    for part in parts(policy):
        if isinstance(part, PolicySettings) and part.one_objective:
            return f"policy {part.name!r} takes no sweep of several objectives, since {part.one_objective}"
    return None


def with_parts(policy: Policy[Any], change: Callable[[Policy[Any]], Policy[Any]]) -> Policy[Any]:
    """Return ``policy`` with each of its parts put through ``change``, in the same wrappers."""
    if not isinstance(policy, Wrapper):
        return change(policy)
    return policy.around([with_parts(inner, change) for inner in policy.within])


def most_moves(policy: Policy[Any]) -> int | None:
    """Return how many moves of one trial ``policy`` makes at most; None where that has no limit or nobody knows."""
    total = 0
    for part in parts(policy):
        if not isinstance(part, PolicySettings) or part.most_moves is None:
            return None
        total += part.most_moves
    return total
