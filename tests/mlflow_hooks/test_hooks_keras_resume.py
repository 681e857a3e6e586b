"""A Keras ``fit`` that is broken off in mid-epoch and goes on is the ``fit`` that never was."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.mlflow_hooks.hook_jobs import RunJob

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.slow,
    # Not imported here: the trainings are processes of their own.
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs the tensorflow extra"),
]
EPOCHS = 8


def history(folder: Path) -> list[tuple[str, int, float]]:
    lines = map(json.loads, (folder / "points.jsonl").read_text().splitlines())
    return [(p["key"], p["step"], p["value"]) for p in lines if not p["key"].startswith("specon.")]


@pytest.mark.parametrize("more", [{"JOB_DATA": "arrays"}, {}, {"JOB_BESIDE": "always"}], ids=str)
def test_weights_and_history_are_those_of_an_uninterrupted_fit(
    run_job: RunJob, state_root: Path, more: dict[str, str]
) -> None:
    whole = run_job("keras", "whole", **more)
    assert run_job("keras", "moved", JOB_SIGNAL="3:SIGTERM", **more).code == 75
    assert run_job("keras", "moved", JOB_SIGNAL="5:SIGKILL", **more).code == -9
    moved = run_job("keras", "moved", **more)

    assert moved.code == whole.code == 0
    assert 3 <= int(moved.out["start"]) <= 5  # saving may not take more than its share of the time
    assert moved.out["weights"] == whole.out["weights"]
    expected = history(state_root / "whole")
    assert [step for key, step, _ in expected if key == "val_loss"] == list(range(EPOCHS))
    assert history(state_root / "moved") == expected
