"""What a policy is. A policy decides as data; it never acts, waits, or looks anything up."""

from typing import ClassVar, Protocol, TypeVar

from controllers.model import Action, Decision, Snapshot

S = TypeVar("S")


class Policy(Protocol[S]):
    """A frozen, validated settings object with one pure method.

    ``name`` is what people type. ``needs`` lists the kinds of action it may propose; a world that
    lacks one refuses the policy before anything starts. ``state_type`` is the frozen dataclass of
    its state, which survives a round trip through JSON.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[type[Action]]]

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
