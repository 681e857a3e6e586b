from pathlib import Path

import pytest

from tests.workflows.job_runs import curve, interrupt, run
from workflows.jobs import train

pytestmark = [pytest.mark.pytorch, pytest.mark.slow]

MODELS = [model for model in train.MODELS if model.endswith("-pytorch")]
# What is left of the first loss after 40 short steps, with room for other processors' rounding.
LEFT = {"vae-pytorch": 0.75, "dynamic-rnn-pytorch": 0.75, "elastic-pytorch": 0.85}


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch")


@pytest.mark.parametrize("model", MODELS)
def test_job_learns(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECON_STATE_ROOT", str(tmp_path))
    monkeypatch.setenv("SPECON_CPUS", "1")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    train.main([f"--model={model}", "--steps=40", "--work=6", "--lr=0.005"])
    losses = curve(tmp_path)
    assert len(losses) == 40
    assert losses[-1] < LEFT.get(model, 0.5) * losses[0]


def test_interrupted_trial_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    model, *options = ("mnist-pytorch", "--steps=60", "--work=12")  # its dropout draws from the global generator
    assert interrupt(model, parts, *options, after_steps=5) == 75
    assert 5 <= len(curve(parts)) < 60
    assert run(model, parts, *options) == run(model, whole, *options)
