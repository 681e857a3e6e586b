import contextlib
import importlib
from pathlib import Path

import pytest

from tests.workflows.job_runs import curve, interrupt, run
from workflows.jobs import train

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

MODELS = [model for model in train.MODELS if model.endswith("-keras")]
LEFT = {"vae-keras": 0.75, "dynamic-rnn-keras": 0.75, "elastic-keras": 0.85}


@pytest.fixture(autouse=True)
def _tensorflow() -> None:
    # Both frameworks bring an LLVM; with TensorFlow's there first, that of PyTorch's compiler aborts the process.
    with contextlib.suppress(ImportError):
        importlib.import_module("torch._dynamo")
    pytest.importorskip("tensorflow")


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
    model, *options = ("vae-keras", "--steps=60")  # its code draws noise
    assert interrupt(model, parts, *options, after_steps=5) == 75
    assert 5 <= len(curve(parts)) < 60
    assert run(model, parts, *options) == pytest.approx(run(model, whole, *options), rel=1e-4)
