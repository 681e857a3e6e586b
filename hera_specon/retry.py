"""When a trial gets another attempt."""

from typing import Final

from hera.workflows import RetryStrategy
from hera.workflows.models import RetryStrategy as RetryStrategyModel

from controllers.core.expressions import MOVED
from hera_specon.amounts import is_whole
from hera_specon.errors import SweepError

MOST_RETRIES: Final = 50
"""Attempts after the first, of any kind: bounds a pod that can never be created."""
EXPECTED_MOVES: Final = 2
"""SpeCon moves a trial at most twice (once for each step down in its categories)."""

_LOST: Final = "lastRetry.exitCode == '-1'"


def trial_retries(failures: int) -> RetryStrategyModel:
    """Return the retryStrategy that tells a move from a failure.

    Argo counts every attempt, moves included, and an expression sees only the last one. So an attempt
    that was asked to leave (exit 75; 143 where SIGTERM met no hooks; or ended for its move by force) and a lost pod
    (no exit code, shown as -1) always get another, and the room for real failures is widened by the moves to
    expect: at least ``failures`` of them are forgiven, and up to two more where a trial never moved. With 0 no
    failure is forgiven. There is no backoff, since a moved trial should go on at once.

    Args:
        failures: Real failures to forgive.

    Raises:
        SweepError: ``failures`` is no whole number from 0 to 40.
    """
    most = MOST_RETRIES - 10
    if not is_whole(failures) or not 0 <= failures <= most:
        problem = f"retries= is a whole number from 0 to {most}, not {failures!r}"
        raise SweepError(problem)
    reasons = [MOVED, _LOST]
    if failures:
        reasons.append(f"asInt(retries) < {failures + EXPECTED_MOVES}")
    strategy = RetryStrategy(limit=MOST_RETRIES, retry_policy="Always", expression=" || ".join(reasons))
    return strategy.build()
