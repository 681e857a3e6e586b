"""The error of the simulated world."""

from controllers.core.errors import SpeconError


class WorkloadError(SpeconError, ValueError):
    """A workload, cost or fault that cannot be simulated; the message names it, and the offending value.

    It is a ValueError too, so that pydantic tells the place in the file where a saved case holds such a value.
    """
