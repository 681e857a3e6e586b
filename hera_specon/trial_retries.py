"""The retries of a trial in Argo, which tell a move from a failure."""

from typing import Final

from hera.workflows import RetryStrategy
from hera.workflows.models import RetryStrategy as RetryStrategyModel

from controllers.core.expressions import MOVED, gang_retries, leaves, losses, retries
from controllers.policies.registry import POLICIES, parse_policy
from controllers.policies.wrappers.wrapper import most_moves
from hera_specon.errors import SweepError
from hera_specon.settings import is_whole

LIMIT: Final = 1000
"""Argo's ``limit``: attempts after the first, of any kind. It counts moves and pauses, too: a controller moves a trial
no more that comes near it."""
MOST_RETRIES: Final = 50
"""Attempts after the first that fail or are lost: bounds a pod that can never be created."""
MOST_GANG_RETRIES: Final = 200
"""The same of a gang, which also moves to grow and shrink."""
MOVES_WITHOUT_LIMIT: Final = 10
"""Moves to expect of a trial where its policy declares no limit."""
MOST_FAILURES: Final = MOST_RETRIES - MOVES_WITHOUT_LIMIT
"""Greatest ``retries=``, so that it and the moves stay within ``MOST_RETRIES``."""
_LOST: Final = "lastRetry.exitCode == '-1'"


def expected_moves(policy: str | None) -> int:
    """Return how many moves a trial needs room for under ``policy``, the spec string of a policy.

    For None, the user who runs the sweep chooses the policy: the greatest number that a policy with a limit declares.
    """
    if policy is None:
        return max(known.most_moves or 0 for known in POLICIES.values())
    most = most_moves(parse_policy(policy))
    return MOVES_WITHOUT_LIMIT if most is None else min(most, MOVES_WITHOUT_LIMIT)


def trial_retries(sweep: str, failures: int, policy: str | None) -> RetryStrategyModel:
    """Return the retryStrategy of the trials of ``sweep``, which tells a move from a failure.

    Argo counts every attempt, moves included, and an expression sees only the last one. So two kinds of attempts
    get another: one that was asked to leave (exit 75; 143 if SIGTERM met no hooks; or killed for its move), unless a
    controller sees the trial leave by itself and come no further, and one whose pod was lost (no exit code, shown as
    -1). For real failures the limit is ``failures`` plus the expected moves: at least ``failures`` of them are
    forgiven, and without a controller more if the trial moved less often. A controller says in an annotation how many
    attempts there may be by its moves so far, and after two that failed alike at once. With 0 no failure is forgiven.
    There is no backoff, because a moved trial should continue at once.

    Args:
        sweep: Name of the sweep.
        failures: Real failures to forgive.
        policy: Spec string of the sweep's policy, None if it names none.

    Raises:
        SweepError: ``failures`` is no whole number from 0 to 40.
    """
    _check_failures(failures)
    most = failures + expected_moves(policy) if failures else 0
    reasons = (
        f"{MOVED} && {leaves(sweep, LIMIT)}",
        f"{_LOST} && {losses(sweep, most, MOST_RETRIES)}",
        retries(sweep, most),
    )
    strategy = RetryStrategy(limit=LIMIT, retry_policy="Always", expression=" || ".join(reasons))
    return strategy.build()


def gang_trial_retries(sweep: str, failures: int) -> RetryStrategyModel:
    """Return the retryStrategy of the gangs of ``sweep``, which forgives exactly ``failures`` real failures.

    A lost worker is a failure of the trial. An attempt that a controller asked to leave is none.

    Raises:
        SweepError: ``failures`` is no whole number from 0 to 40.
    """
    _check_failures(failures)
    expression = gang_retries(sweep, failures)
    return RetryStrategy(limit=MOST_GANG_RETRIES, retry_policy="Always", expression=expression).build()


def _check_failures(failures: object) -> None:
    if not is_whole(failures) or not 0 <= failures <= MOST_FAILURES:
        problem = f"retries= is a whole number from 0 to {MOST_FAILURES}, not {failures!r}"
        raise SweepError(problem)
