from typing import cast

import pytest

from controllers.core.labels import MOVED_MESSAGE
from controllers.policies.registry import POLICIES, Deadline
from controllers.worlds.local.workflow.steps import RetryRule
from hera_specon import SweepError
from hera_specon.trial_retries import MOST_FAILURES, MOST_RETRIES, MOVES_WITHOUT_LIMIT, trial_retries
from tests.retry_texts import filled_in


def goes_on(failures: int, exit_code: str, retries: int, message: str = "", policy: str | None = "specon") -> bool:
    """What becomes of a trial after the attempt that follows ``retries`` others."""
    strategy = trial_retries("vae", failures, policy)
    expression = filled_in(cast("str", strategy.expression))
    rule = RetryRule(limit=MOST_RETRIES, policy="Always", expression=expression)
    return rule.allows(retries + 1, int(exit_code), message=message)


@pytest.mark.parametrize("exit_code", ["75", "143", "-1"])
@pytest.mark.parametrize("failures", [0, 3])
def test_a_moved_or_lost_attempt_is_always_followed_by_another(failures: int, exit_code: str) -> None:
    assert all(goes_on(failures, exit_code, retries) for retries in range(MOST_RETRIES))


def test_an_attempt_that_was_ended_by_force_for_its_move_is_no_failure() -> None:
    assert goes_on(0, "137", 9, message=f"main: Error (exit code 137): {MOVED_MESSAGE}")
    assert not goes_on(0, "137", 0, message="main: Error (exit code 137): OOMKilled")


@pytest.mark.parametrize(
    ("policy", "moves"),
    [
        ("default", 0),
        ("flowcon", 0),
        ("specon", 2),
        ("flowcon2", 1),
        ("procon+flowcon+specon", 2),
        ("deadline", 1),
        (None, max(known.most_moves or 0 for known in POLICIES.values())),
    ],
)
def test_as_many_failures_as_asked_for_are_forgiven_after_the_moves_of_the_policy(
    policy: str | None, moves: int
) -> None:
    failures = 3
    assert all(goes_on(failures, "1", moves + failed, policy=policy) for failed in range(failures))
    assert not goes_on(failures, "1", moves + failures, policy=policy)


def test_a_policy_that_moves_without_limit_stays_within_the_limit_of_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deadline, "most_moves", None)
    assert goes_on(MOST_FAILURES, "1", MOST_FAILURES + MOVES_WITHOUT_LIMIT - 1, policy="deadline")
    assert not goes_on(MOST_FAILURES, "1", MOST_FAILURES + MOVES_WITHOUT_LIMIT, policy="deadline")
    assert MOST_FAILURES + MOVES_WITHOUT_LIMIT <= MOST_RETRIES


def test_no_failure_is_forgiven_with_no_retries() -> None:
    assert not goes_on(0, "1", 0)


def test_moves_wait_for_nothing_and_errors_count_too() -> None:
    strategy = trial_retries("vae", 3, None)
    assert strategy.backoff is None
    assert strategy.retry_policy == "Always"


@pytest.mark.parametrize("failures", [-1, 41, 1.5, True, "3"])
def test_an_impossible_number_of_retries_is_refused(failures: int) -> None:
    with pytest.raises(SweepError, match=repr(failures)):
        trial_retries("vae", failures, None)
