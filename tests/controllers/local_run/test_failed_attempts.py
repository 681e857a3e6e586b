"""A trial that an attempt failed of is told of where it goes on, and only once."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from controllers.core import labels
from controllers.core.model import Phase
from controllers.local_run.failed_attempts import MOST_TOLD, FailedAttempts
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.standing import Standing
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract

SAVED = Standing(hooked=True, saved=3, gained=4, left=False)
BEGINS_AGAIN = Standing(hooked=False, saved=0, gained=0, left=False)


def job(name: str, failures: int = 0, code: int = 0, phase: Phase = Phase.PENDING) -> LocalJob:
    step = PodStep(name, "t", (), env={contract.ENV_TRIAL_ID: name}, labels={labels.LABEL_SWEEP: "s"})
    return LocalJob(step, 0.0, 0.1, phase=phase, failures=failures, exit_code=code)


def told(before: LocalJob, after: LocalJob, standings: Mapping[str, Standing]) -> list[str]:
    failed = FailedAttempts([before], str)
    lines = failed.look([after], lambda: standings)
    assert failed.look([after], lambda: standings) == []
    return lines


@pytest.mark.parametrize(
    ("code", "how"),
    [(137, "was killed by signal 9"), (1, "failed with exit code 1"), (128, "failed with exit code 128")],
)
def test_a_trial_that_failed_is_told_of_once_with_where_it_goes_on(code: int, how: str) -> None:
    assert told(job("t0"), job("t0", 1, code), {"t0": SAVED}) == [
        f"an attempt of t0 {how}: the next one goes on at step 3"
    ]


def test_what_failed_before_the_run_goes_on_is_no_news() -> None:
    assert told(job("t0", 1, 137), job("t0", 1, 137), {"t0": SAVED}) == []


def test_a_trial_that_begins_from_nothing_or_failed_for_good_is_told_of_elsewhere() -> None:
    assert told(job("t0"), job("t0", 1, 137), {"t0": BEGINS_AGAIN}) == []
    assert told(job("t0"), job("t0", 3, 1, Phase.FAILED), {}) == []


def test_of_a_trial_that_fails_again_and_again_the_first_few_times_are_told() -> None:
    failed, now = FailedAttempts([], str), job("t0")
    lines = [failed.look([replace(now, failures=times)], lambda: {"t0": SAVED}) for times in range(1, MOST_TOLD + 3)]
    assert [len(found) for found in lines] == [1] * MOST_TOLD + [0, 0]
