"""Goals as pods carry them: each is checked, and one that can't be costs the trial nothing but the goal."""

import logging

import pytest

from controllers.core import labels
from controllers.core.goals import AskedGoals
from controllers.worlds.argo.reading.definitions import TrialDefinition, read_definition
from mlflow_hooks import contract


def defined(where: str, **goals: str) -> TrialDefinition:
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
    notes |= {f"hera-specon.io/{name.replace('_', '-')}": value for name, value in goals.items()}
    found = read_definition(where, {}, notes, {contract.ENV_TRIAL_ID: "uid.vae.t000"})
    assert found is not None
    return found


def test_goals_are_read_from_the_annotations_of_a_pod() -> None:
    asked = defined("pod a", deadline="90", target="0.5", seconds_per_step="2").goals
    assert asked == AskedGoals(90.0, 0.5, 2.0)
    assert defined("pod b").goals == AskedGoals()


@pytest.mark.parametrize("value", ["", "soon", "0", "-5", "nan", "1e999", "9" * 5000])
def test_a_goal_that_cannot_be_is_warned_of_and_left_out(value: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert defined(f"pod {value[:9]!r}", deadline=value).goals == AskedGoals()
    (record,) = caplog.records
    assert "hera-specon.io/deadline" in record.getMessage()
    assert len(record.getMessage()) < 400
