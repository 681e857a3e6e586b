from typing import Any

import pytest

from controllers.core.labels import ANNOTATION_RETRIES
from controllers.worlds.local.workflow import RetryRule, WorkflowError, read_workflow
from controllers.worlds.local.workflow.expression import ExpressionError, parse_expression, truth
from controllers.worlds.local.workflow.steps import Backoff
from hera_specon.trial_retries import expected_moves, trial_retries
from tests.contract.bench import Behaviour, trial_template, workflow

MOVES = 'lastRetry.exitCode == "75" || lastRetry.exitCode == "-1" || asInt(retries) < 3'


def test_a_move_always_gets_another_attempt_and_a_failure_only_so_many() -> None:
    rule = RetryRule(limit=50, policy="Always", expression=MOVES)
    assert rule.allows(20, 75)
    assert rule.allows(20, -1, status="Error")
    assert rule.allows(3, 1)
    assert not rule.allows(4, 1)


def test_the_limit_counts_retries_not_attempts() -> None:
    rule = RetryRule(limit=2)
    assert [rule.allows(attempts, 1) for attempts in (1, 2, 3)] == [True, True, False]


def test_a_limit_holds_even_where_the_expression_would_go_on() -> None:
    assert not RetryRule(limit=1, policy="Always", expression="true").allows(2, 75)


@pytest.mark.parametrize(
    ("policy", "failed", "lost"), [("OnFailure", True, False), ("OnError", False, True), ("Always", True, True)]
)
def test_policies_tell_failures_from_lost_attempts(policy: str, failed: bool, lost: bool) -> None:  # noqa: FBT001
    rule = RetryRule(policy=policy)
    assert (rule.allows(1, 1), rule.allows(1, -1, status="Error")) == (failed, lost)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("asFloat(lastRetry.duration) >= 12.5", True),
        ("asFloat(lastRetry.duration) > 12.5 and true", False),
        ("!(lastRetry.status == 'Failed') or lastRetry.message != 'no disk'", False),
        ('not (asInt(lastRetry.exitCode) <= 1) && lastRetry.message == "no disk"', True),
        ("asInt(retries) == 1 || asInt(retries) == -1", True),
        ("lastRetry.message contains 'disk'", True),
        ("not (lastRetry.message contains 'disk') || lastRetry.message contains 'memory'", False),
    ],
)
def test_expressions_compare_and_join_what_the_last_attempt_left(expression: str, holds: bool) -> None:  # noqa: FBT001
    rule = RetryRule(policy="Always", expression=expression)
    assert rule.allows(2, 2, duration_s=12.5, message="no disk") is holds


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("lastRetry.exitCode == 75", "quotes around it"),
        ("true || lastRetry.exitcode == '75'", "lastRetry.exitcode"),
        ("asInt(lastRetry.duration) > 3", "'1.5' is not a number"),
        ("lastRetry.exitCode", "neither true nor false"),
        ("len(lastRetry.message) > 3", "len"),
        ("asInt(retries) contains 1", "no text"),
        ("lastRetry.exitCode == '75'; true", "cannot be read"),
        ("lastRetry.exitCode ==", "ends too early"),
        ("(true", "lacks a"),
        ("true true", "does not expect"),
    ],
)
def test_a_mistaken_expression_is_refused_before_any_attempt(expression: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        RetryRule(expression=expression)


def test_an_expression_that_fails_on_what_an_attempt_left_allows_no_other() -> None:
    rule = RetryRule(policy="Always", expression="asInt(lastRetry.message) < 3")
    assert rule.allows(1, 1, message="2")
    assert not rule.allows(1, 1, message="out of memory")


def test_backoff_grows_by_its_factor_up_to_its_cap() -> None:
    rule = RetryRule(backoff=Backoff(10.0, 2.0, 30.0))
    assert [rule.wait_s(attempts) for attempts in (1, 2, 3)] == [10.0, 20.0, 30.0]
    assert RetryRule().wait_s(5) == 0.0


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("heads == heads", True),
        ("heads != 'heads'", False),
        ("3 > 12", False),
        ("'3' > '12'", True),
        ("fast-lane == fast-lane && !(2.5 < 2)", True),
        ("1.2.3 == 1.2.3", True),
    ],
)
def test_bare_words_in_a_when_are_texts_and_numbers_compare_as_numbers(when: str, holds: bool) -> None:  # noqa: FBT001
    assert truth(parse_expression(when), None) is holds


def read(retries: int, notes: dict[str, str]) -> Any:  # noqa: ANN401 - a step's rule
    """Return the rule of a trial that its sweep forgives so many failures, and whose template has ``notes`` too."""
    manifest = workflow({"a": Behaviour()}, trial_template)
    template = manifest["spec"]["templates"][0]
    strategy = trial_retries("sweep", retries, None)
    template["retryStrategy"] = {"limit": "1000", "retryPolicy": "Always", "expression": strategy.expression}
    template["metadata"]["annotations"] |= notes
    (planned,) = read_workflow(manifest, "sweep", "uid", {}).trials()
    return planned.step.retry


def test_a_trial_is_forgiven_as_many_failures_as_its_annotation_says_whatever_argo_was_told() -> None:
    rule = read(3, {ANNOTATION_RETRIES: "3"})
    for code in (1, 75, 130, 137, 139, 143):
        assert [rule.allows(failures, code) for failures in (1, 3, 4)] == [True, True, False]


def test_the_pauses_of_a_trial_grow() -> None:
    rule = read(3, {ANNOTATION_RETRIES: "3"})
    assert 0 < rule.wait_s(1) < rule.wait_s(2) < rule.wait_s(3)


def test_a_sweep_of_an_older_version_is_forgiven_what_argo_was_told() -> None:
    most = 3 + expected_moves(None)
    rule = read(3, {})
    assert [rule.allows(failures, 143) for failures in (most, most + 1)] == [True, False]


@pytest.mark.parametrize("told", ["many", "-1", "1.5", ""])
def test_retries_that_are_no_number_are_refused_by_name(told: str) -> None:
    with pytest.raises(WorkflowError, match=ANNOTATION_RETRIES):
        read(3, {ANNOTATION_RETRIES: told})
