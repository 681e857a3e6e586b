"""Runs that anybody may make for a trial are asked for their steps within bounds."""

from typing import cast

import pytest
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.metric_source import FoundRun
from controllers.tracking.script_trainings import MOST_ATTEMPTS, ScriptTrainings
from controllers.tracking.values import MetricPoint


def made(number: int) -> FoundRun:
    loss = {"loss": MetricPoint(0.5, 3, 1.0)}
    return FoundRun(TrialId("uid.s.a"), f"run{number}", loss, began=number, attempt=f"attempt {number}")


def test_of_thousands_of_attempts_the_newest_hundred_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def points_of(_: MlflowClient, run_id: str, __: str) -> list[MetricPoint]:
        asked.append(run_id)
        return [MetricPoint(0.5, step, float(step)) for step in (0, 1, 2, 3)]

    monkeypatch.setattr("controllers.tracking.script_trainings.points_of", points_of)
    runs, trainings = [made(number) for number in range(3000)], ScriptTrainings(cast("MlflowClient", None))
    training = trainings.of(runs, "loss")
    assert (training.attempts, training.begun_again) == (("attempt 2999",), MOST_ATTEMPTS - 1)
    assert len(training.abandoned) == len(runs) - 1
    assert asked == [f"run{number}" for number in range(3000 - MOST_ATTEMPTS, 3000)]
    assert trainings.of(runs, "loss") == training
    assert len(asked) == MOST_ATTEMPTS, "what cannot change is not asked again"


def test_what_there_is_no_time_to_ask_is_taken_to_go_on() -> None:
    training = ScriptTrainings(cast("MlflowClient", None)).of([made(1), made(2)], "loss", lambda: False)
    assert (training.attempts, training.abandoned, training.begun_again) == (
        ("attempt 1", "attempt 2"),
        frozenset(),
        0,
    )
