"""What the page tells of models: which hyperparameters mattered, and a line for each trial."""

import json
import math
from random import Random
from typing import Any

import pytest

from controllers.core.results import RunResult, TrialResult
from hera_specon.report.models import importance_chart, importances, parallel_chart, varied


def ranked(trials: int = 40, stopped: str = "") -> list[TrialResult]:
    """Trials whose loss follows from their learning rate alone."""
    chance = Random(7)  # noqa: S311 - repeatable
    found = []
    for number in range(trials):
        lr, width = 10 ** chance.uniform(-5, 0), chance.randint(8, 256)
        params = {"lr": lr, "width": width, "optimizer": chance.choice(["adam", "sgd"]), "epochs": 50}
        loss = (math.log10(lr) + 2.5) ** 2
        found.append(TrialResult(f"s.t{number}", 0.0, 1.0, "n1", 0, 1, loss, params=params, sweep="s", stopped=stopped))
    return RunResult("default", tuple(found)).ranked()["s"]


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
    (lines,) = data["data"]
    labels = [axis["label"] for axis in lines["dimensions"]]
    assert labels == ["lr", "width", "optimizer", "&lt;b&gt;loss&lt;/b&gt;"]
    assert lines["dimensions"][2]["ticktext"] == ["adam", "sgd"]
    assert all(tick.startswith("1e") for tick in lines["dimensions"][0]["ticktext"])


def test_what_only_some_trials_have_gets_no_axis() -> None:
    both: dict[str, Any] = {"x": 1, "y": 2}
    trials = [TrialResult(f"t{n}", 0, 1, "n", 0, 1, 0.1, params=params) for n, params in enumerate((both, {"x": 2}))]
    assert varied(trials) == {"x": [1, 2]}
