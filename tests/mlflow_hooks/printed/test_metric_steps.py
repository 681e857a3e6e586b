"""The steps of metrics that are read by their names."""

from mlflow_hooks.printed.metric_steps import MetricSteps


def steps(*told: int | None) -> list[int]:
    given = MetricSteps({})
    return [given.step_of("loss", step) for step in told]


def test_values_have_the_step_that_their_line_tells() -> None:
    assert steps(1, 2, 5) == [1, 2, 5]


def test_without_steps_values_are_numbered() -> None:
    assert steps(None, None, None) == [0, 1, 2]


def test_what_was_numbered_once_stays_so() -> None:
    assert steps(None, 1, None, 2) == [0, 1, 2, 3]


def test_a_value_without_a_step_or_of_an_earlier_one_belongs_to_the_newest() -> None:
    assert steps(3, None, 3, 2, 4) == [3, 3, 3, 3, 4]


def test_a_count_that_begins_again_goes_on_after_what_there_was() -> None:
    assert steps(1, 2, 3, 1, 2, 3, 1) == [1, 2, 3, 4, 5, 6, 7]
    assert steps(0, 1, 0, 1) == [0, 1, 2, 3]


def test_metrics_have_steps_of_their_own() -> None:
    given = MetricSteps({})
    assert [given.step_of("loss", 7), given.step_of("acc", None), given.step_of("acc", None)] == [7, 0, 1]


def test_no_step_is_beyond_what_mlflow_keeps() -> None:
    assert steps(2**63 - 1, 0, 1) == [2**63 - 1] * 3
