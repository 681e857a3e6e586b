"""When a failed attempt gets another one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryRule:
    """A step's retryStrategy. ``limit`` is the number of retries after the first attempt, None for no limit."""

    limit: int | None = None
    policy: str = "OnFailure"
    expression: str | None = None

    def allows(  # noqa: PLR0913 - Argo's expression sees these five values
        self,
        attempts_made: int,
        exit_code: int,
        *,
        status: str = "Failed",
        duration_s: float = 0.0,
        message: str = "",
    ) -> bool:
        """Return whether another attempt follows the one that just failed, the ``attempts_made``-th."""
        raise NotImplementedError

    def wait_s(self, attempts_made: int) -> float:
        """Return the seconds to wait before the attempt that follows the ``attempts_made``-th."""
        raise NotImplementedError
