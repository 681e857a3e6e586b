"""How a check says that an invariant does not hold."""

from typing import NoReturn

from controllers.core.errors import SpeconError


class InvariantError(SpeconError):
    """An invariant does not hold.

    Args:
        invariant: which one, in words.
        detail: with which values.
    """

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant
        self.detail = detail


def broken(invariant: str, detail: str) -> NoReturn:
    """Report that an invariant does not hold.

    Raises:
        InvariantError: always.
    """
    raise InvariantError(invariant, detail)
