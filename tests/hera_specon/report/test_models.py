"""What the page tells of models: which hyperparameters mattered, and a line for each trial."""

import json
import math
from random import Random
from typing import Any

import pytest

from controllers.core.results import RunResult, TrialResult
from hera_specon.report.models import importance_chart, importances, parallel_chart, varied_hyperparameters


def ranked(trials: int = 40, stopped: str = "") -> list[TrialResult]:
    """Trials whose loss follows from their learning rate alone."""
    chance = Random(7)  # noqa: S311 - repeatable
    found = []
    for number in range(trials):
        lr, width = 10 ** chance.uniform(-5, 0), chance.randint(8, 256)
        params = {"lr": lr, "width": width, "optimizer": chance.choice(["adam", "sgd"]), "epochs": 50}
        loss = (math.log10(lr) + 2.5) ** 2
        found.append(TrialResult(f"s.t{number}", 0.0, 1.0, "n1", 0, 1, loss, params=params, sweep="s", stopped=stopped))
    return RunResult("default", tuple(found)).ranking()["s"]


def test_the_hyperparameter_that_matters_is_the_most_important() -> None:
    found = importances(ranked())
    assert next(iter(found)) == "lr"
    assert set(found) == {"lr", "width", "optimizer"}
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["lr"] > 0.6


def test_few_trials_or_trials_that_were_ended_early_say_nothing() -> None:
    assert importances(ranked(9)) == {}
    assert importances(ranked(40, stopped="it lost")) == {}
    assert importance_chart({}) == ""
    assert parallel_chart(ranked(2), "loss") == ""


def test_every_trial_is_a_line_over_what_differs_between_trials() -> None:
    chart = parallel_chart(ranked(12), "<b>loss</b>")
    data = json.loads(chart.partition(">")[2].partition(">")[2].partition("</script>")[0])
    drawn = data["layout"]
    assert drawn["xaxis"]["ticktext"] == ["lr", "width", "optimizer", "&lt;b&gt;loss&lt;/b&gt;"]
    marks = [[mark["text"] for mark in drawn["annotations"] if mark["x"] == place] for place in range(4)]
    assert marks[2] == ["adam", "sgd"]
    assert all(mark.startswith("1e") for mark in marks[0])
    lines = [line for shade in data["data"] for line in _lines(shade["y"])]
    assert len(lines) == 12
    assert all(0.0 <= height <= 1.0 for line in lines for height in line)
    # The objective is the last axis, and the best trials are drawn last, over the others.
    assert [line[-1] for line in lines][-1] == min(line[-1] for line in lines) == 0.0


def _lines(heights: list[float | None]) -> list[list[float]]:
    found: list[list[float]] = [[]]
    for height in heights:
        if height is None:
            found.append([])
        else:
            found[-1].append(height)
    return found[:-1]


def test_what_only_some_trials_have_gets_no_axis() -> None:
    both: dict[str, Any] = {"x": 1, "y": 2}
    trials = [TrialResult(f"t{n}", 0, 1, "n", 0, 1, 0.1, params=params) for n, params in enumerate((both, {"x": 2}))]
    assert varied_hyperparameters(trials) == {"x": [1, 2]}
