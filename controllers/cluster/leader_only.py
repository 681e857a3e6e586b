"""What keeps a controller's actions and state from a cluster that it must not change."""

from collections.abc import Callable
from typing import Final

from controllers.core.model import Action
from controllers.core.ports import Outcome, OutcomeKind, World, refused
from controllers.driving.wrapped_world import WrappedWorld

RECOMMENDED: Final = Outcome(OutcomeKind.RECOMMENDED)
NOT_LEADING: Final = refused("another controller leads by now")


class LeaderOnly(WrappedWorld):
    """A world that is acted on only while ``leading``, and not at all by a controller that is only to recommend."""

    def __init__(self, world: World, leading: Callable[[], bool], *, recommend: bool) -> None:
        super().__init__(world)
        self._leading = leading
        self._recommend = recommend

    def apply(self, action: Action) -> Outcome:
        """Carry out ``action``, if this controller may."""
        if self._recommend:
            return RECOMMENDED
        return self._world.apply(action) if self._leading() else NOT_LEADING


class ForgetfulStore:
    """Keeps nothing: for a controller that may write nothing. It begins anew with each start."""

    def load(self) -> str | None:
        """Return no state."""

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Drop ``state``."""

    def flush(self) -> None:
        """Nothing waits."""
