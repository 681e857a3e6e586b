"""What a run that has ended says of MLflow that did not answer at its end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controllers.core.results import RunResult, TrialResult
from hera_specon.cli.output import problems


def ended(*metrics: float | None, **changes: Any) -> str:  # noqa: ANN401 - any field of a result
    trials = [TrialResult(f"t{n:03d}", 0.0, 9.0, "n1", 0, 1, metric, **changes) for n, metric in enumerate(metrics)]
    run = SimpleNamespace(lacking="MLflow did not answer", folder=Path("nowhere"))
    return problems(cast("Any", run), [RunResult("default", tuple(trials))])


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hera_specon.records.run_folder.parts_of", lambda _: [])
    monkeypatch.setattr("hera_specon.records.failures.failures", lambda *_: "")


def test_results_with_all_values_are_whole_though_mlflow_lacks_some() -> None:
    assert "The results above are whole." in ended(0.5, 0.25)


def test_trials_whose_values_mlflow_alone_knows_are_named() -> None:
    assert "lack the objective of t001: without hooks" in ended(0.5, None)
    assert "lack the objective of 2 trials, such as t000: without hooks" in ended(None, None)


@pytest.mark.parametrize("changes", [{"succeeded": False}, {"stopped": "it was behind"}])
def test_trials_that_did_not_train_to_their_end_are_not_missed(changes: dict[str, Any]) -> None:
    assert "The results above are whole." in ended(None, **changes)
