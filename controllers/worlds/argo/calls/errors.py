"""What may stand against a call to the API server."""

from typing import Any

from controllers.core.errors import SpeconError


class ApiError(SpeconError):
    """The API server did not do what was asked."""


class NoConfigurationError(SpeconError):
    """Nothing says where the API server is and how to log in."""


class NotFoundError(ApiError):
    """There is no such object."""


class ConflictError(ApiError):
    """The object has changed, is another one by now, or exists already."""


class GoneError(ApiError):
    """The resource version is too old to go on from."""


class ForbiddenError(ApiError):
    """The controller's account may not do this, or an amount is more than the node has."""


class RejectedError(ApiError):
    """The API server found the request invalid."""


class NotAllowedNowError(ApiError):
    """This controller must not change anything now: another one may lead, or it is only to recommend."""


class TooLargeError(ApiError):
    """The API server sent more than this process will hold.

    ``metadata`` are those of the list that it sent, empty where they are not known.
    """

    def __init__(self, message: str, metadata: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.metadata = metadata or {}


class UnavailableError(ApiError):
    """The API server did not answer, or the answer makes no sense; the same call may work later."""


class BudgetError(ApiError):
    """A PodDisruptionBudget speaks against it for now."""


class TooManyRequestsError(UnavailableError):
    """The API server has more to do than it can, and asks to be left alone for a while."""
