"""What a policy is. A policy decides as data; it never acts, waits, or looks anything up."""

from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from pydantic import TypeAdapter, ValidationError

from controllers.core.actions import Action, Decision
from controllers.core.errors import SpeconError
from controllers.core.model import Snapshot

S = TypeVar("S")
CLOCK_SLACK: Final = 1e-6
"""Seconds by which a wake-up may be early: sums of intervals are not exact."""


class PolicyStateError(SpeconError):
    """A saved state is not one of the policy that should go on with it."""


class Policy(Protocol[S]):
    """A frozen, validated settings object with one pure method.

    ``name`` is what people type. ``needs`` lists the kinds of action it may propose; a world that
    lacks one refuses the policy before anything starts. ``state_type`` is the frozen dataclass of
    its state, which survives a round trip through JSON.
    """

    @property
    def name(self) -> str:
        """Name that people type."""
        ...

    @property
    def needs(self) -> frozenset[type[Action]]:
        """Kinds of action it may propose."""
        ...

    @property
    def state_type(self) -> type[S]:
        """Type of the state, for reading it back from JSON."""
        ...

    def initial(self) -> S:
        """Return the state before the first decision."""
        ...

    def decide(self, snapshot: Snapshot, state: S) -> Decision[S]:
        """Return what to do now. The same arguments give the same decision, in any order of trials."""
        ...


@runtime_checkable
class OutlivesPolicies(Protocol):
    """A policy around another, which goes on with what it knows where the one within is replaced."""

    def after_another(self, text: str) -> Any:  # noqa: ANN401 - each policy has its own state
        """Return the state to begin with, from what ``dump_state`` wrote of it around another policy."""
        ...


def dump_state(policy: Policy[S], state: S) -> str:
    """Return ``state`` as one line of JSON."""
    return _adapter(policy).dump_json(state).decode()


def load_state(policy: Policy[S], text: str) -> S:
    """Read back what ``dump_state`` wrote.

    Raises:
        PolicyStateError: ``text`` is no state of this policy, for example of another policy's run.
    """
    try:
        loaded: S = _adapter(policy).validate_json(text)
    except ValidationError as error:
        message = f"not a saved state of the policy {policy.name!r}: {text[:120]!r} ({error.errors()[0]['msg']})"
        raise PolicyStateError(message) from error
    return loaded


def state_after_another(policy: Policy[S], text: str) -> S:
    """Return the state that ``policy`` begins with where it follows another, whose state ``text`` is."""
    state: S = policy.after_another(text) if isinstance(policy, OutlivesPolicies) else policy.initial()
    return state


def _adapter(policy: Policy[Any]) -> TypeAdapter[Any]:
    state_type: Any = policy.state_type
    return _adapter_of(state_type)


@lru_cache(maxsize=32)
def _adapter_of(state_type: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - pydantic judges the type
    # Building one takes longer than a decision does.
    return TypeAdapter(state_type)
