"""When a failed attempt gets another one (Argo's retryStrategy)."""

from dataclasses import dataclass

from controllers.worlds.local.workflow.expression import (
    ExpressionError,
    Value,
    check_expression,
    parse_expression,
    truth,
)

POLICIES = ("Always", "OnFailure", "OnError")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds to wait before a retry: ``seconds * factor ** retries made``, at most ``cap_s``."""

    seconds: float
    factor: float = 1.0
    cap_s: float | None = None


@dataclass(frozen=True, slots=True)
class RetryRule:
    """A step's retryStrategy. ``limit`` is the number of retries after the first attempt, None for no limit.

    ``policy`` is ``Always``, ``OnFailure`` or ``OnError``.
    """

    limit: int | None = None
    policy: str = "OnFailure"
    expression: str | None = None
    backoff: Backoff | None = None

    def __post_init__(self) -> None:
        """Try the expression on sample values, so that its mistakes show before anything runs."""
        if self.expression is not None:
            expression = parse_expression(self.expression)
            check_expression(expression, _SAMPLE)
            truth(expression, _SAMPLE)

    def allows(
        self,
        attempts_made: int,
        exit_code: int,
        *,
        status: str = "Failed",
        duration_s: float = 0.0,
        message: str = "",
    ) -> bool:
        """Return whether another attempt follows the ``attempts_made``-th, which just failed.

        An expression that fails on these values, such as ``asInt`` of a text, allows none, as in Argo.

        Args:
            attempts_made: How many attempts there were, at least 1.
            exit_code: The last attempt's; 128 plus the number where a signal ended it, -1 where it is unknown.
            status: ``Failed`` for an exit code other than 0, ``Error`` for an attempt lost from outside.
            duration_s: Seconds that the last attempt lasted.
            message: What the last attempt said of its end.
        """
        if self.policy not in {"Always", "OnError" if status == "Error" else "OnFailure"}:
            return False
        if self.limit is not None and attempts_made > self.limit:
            return False
        names = variables(attempts_made, exit_code, status, duration_s, message)
        try:
            return self.expression is None or truth(parse_expression(self.expression), names)
        except ExpressionError:
            return False

    def wait_s(self, attempts_made: int) -> float:
        """Return the seconds to wait before the attempt that follows the ``attempts_made``-th."""
        if self.backoff is None:
            return 0.0
        wait = self.backoff.seconds * self.backoff.factor ** (attempts_made - 1)
        return wait if self.backoff.cap_s is None else min(wait, self.backoff.cap_s)


def variables(
    attempts_made: int, exit_code: int, status: str = "Failed", duration_s: float = 0.0, message: str = ""
) -> dict[str, Value]:
    """Return what an expression sees after the ``attempts_made``-th attempt; all of it is text, as in Argo."""
    return {
        "retries": str(attempts_made - 1),
        "lastRetry.exitCode": str(exit_code),
        "lastRetry.status": status,
        "lastRetry.duration": repr(duration_s).removesuffix(".0"),
        "lastRetry.message": message,
    }


_SAMPLE = variables(1, 1, "Failed", 1.5, "1")
