"""The rules that end a sweep: how they are joined and written down, and what others may have written."""

import pytest

from controllers.core import labels
from controllers.core.stop_rules import (
    ENDED,
    NO_RULES,
    StopRuleError,
    StopRules,
    duration_told,
    rules_in,
    rules_notes,
    rules_of,
    why_ended,
)

ALL = StopRules.model_validate(
    {"value": 0.01, "plateau": {"trials": 20, "by": 0.001}, "after_s": 5400.0, "cpu_hours": 40.0}
)


def test_what_is_written_is_read_back() -> None:
    assert rules_in(rules_notes(ALL)) == ALL
    assert rules_notes(NO_RULES) == {}
    assert rules_in({}) == NO_RULES
    assert not NO_RULES
    assert rules_of(value=0.0)


def test_rules_are_joined_one_of_a_kind() -> None:
    parts = [rules_of(value=0.01), rules_of(plateau={"trials": 20, "by": 0.001})]
    assert parts[0] | parts[1] | rules_of(after_s=5400.0) | rules_of(cpu_hours=40.0) == ALL
    with pytest.raises(StopRuleError, match=r"one rule of a kind, and after\(\) is given twice"):
        _ = rules_of(after_s=1.0) | rules_of(after_s=2.0)
    with pytest.raises(TypeError):
        _ = ALL | 0.01  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "[]",
        "null",
        '{"value": "0.01"}',
        '{"value": true}',
        '{"value": NaN}',
        '{"value": 1e999}',
        '{"after_s": 1e300}',
        '{"after_s": -1.0}',
        '{"cpu_hours": 0.0}',
        '{"plateau": {"trials": 1e9, "by": 1}}',
        '{"plateau": {"trials": 3, "by": 0}}',
        '{"value": 0.01, "command": "rm"}',
        "[" * 4000,
        '{"value":' * 400,
    ],
)
def test_what_makes_no_sense_counts_as_if_it_was_not_there(text: str) -> None:
    assert rules_in({labels.ANNOTATION_END_WHEN: text}) == NO_RULES


def test_an_error_names_the_rule_and_the_value() -> None:
    with pytest.raises(StopRuleError, match=r"budget\(\): .*greater than 0, not -3\.0"):
        rules_of(cpu_hours=-3.0)
    with pytest.raises(StopRuleError, match=r"plateau\(\): .*greater than or equal to 1, not 0"):
        rules_of(plateau={"trials": 0, "by": 0.1})


def test_durations_are_told_in_the_unit_that_people_use() -> None:
    assert [duration_told(seconds) for seconds in (10800, 5400, 90, 2.5)] == ["3 h", "1.5 h", "1.5 min", "2.5 s"]


def test_why_a_sweep_ended_is_told_by_its_trials() -> None:
    stopped = [
        ("vae", ""),
        ("vae", "it converged"),
        ("gru", f"{ENDED}3 h have passed"),
        ("gru", f"{ENDED}3 h have passed"),
    ]
    assert why_ended(stopped) == {"gru": "3 h have passed"}
