"""With each library's adapter: a second ``fit`` within a trial, as of another fold, is refused before it trains."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from mlflow_hooks.points import Point

pytestmark = [pytest.mark.adapter, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
STEPS = 4
BEGIN = f"""
import numpy as np
from mlflow_hooks import trial
STEPS = {STEPS}
x = np.random.default_rng(1).random((64, 4)).astype("float32")
y = x.sum(1, keepdims=True)
"""
TORCH = """
import torch
data = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
"""
FITS = {
    "sklearn": """
        from sklearn.neural_network import MLPRegressor
        from mlflow_hooks.sklearn import fit_in_steps
        def fit(t):
            model = MLPRegressor(hidden_layer_sizes=(4,), random_state=1)
            for _ in fit_in_steps(t, model, x, y[:, 0], steps=STEPS):
                t.log(loss=-model.score(x, y[:, 0]))
    """,
    "xgboost": """
        import xgboost
        from mlflow_hooks.xgboost import TrialCallback
        def fit(t):
            rows = xgboost.DMatrix(x, y)
            boosting = TrialCallback(t, STEPS)
            xgboost.train({}, rows, boosting.rounds_left, evals=[(rows, "valid")], verbose_eval=False,
                          xgb_model=boosting.model, callbacks=[boosting])
    """,
    "lightgbm": """
        import lightgbm
        from mlflow_hooks.lightgbm import TrialCallback
        def fit(t):
            rows = lightgbm.Dataset(x, y[:, 0])
            boosting = TrialCallback(t, STEPS)
            if boosting.rounds_left:
                lightgbm.train({"verbosity": -1}, rows, boosting.rounds_left, valid_sets=[rows],
                               init_model=boosting.model, callbacks=[boosting])
    """,
    "keras": """
        import keras
        from mlflow_hooks.keras import TrialCallback
        def fit(t):
            model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
            model.compile("adam", "mse")
            model.fit(x, y, epochs=STEPS, initial_epoch=t.next_step, verbose=0, callbacks=[TrialCallback(t)])
    """,
    "lightning": TORCH.replace("\n", "\n        ")
    + """
        import logging, warnings
        from lightning.pytorch import LightningModule, Trainer
        from mlflow_hooks.lightning import TrialCallback
        warnings.filterwarnings("ignore")
        class Model(LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)
            def training_step(self, batch, index):
                loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
                self.log("loss", loss, on_step=False, on_epoch=True)
                return loss
            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)
        def fit(t):
            moving = TrialCallback(t)
            trainer = Trainer(max_epochs=STEPS, accelerator="cpu", callbacks=[moving], logger=False,
                              enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
            trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=16), ckpt_path=moving.ckpt_path)
    """,
    "transformers": TORCH.replace("\n", "\n        ")
    + """
        from transformers import Trainer, TrainingArguments
        from mlflow_hooks.huggingface import TrialCallback
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)
            def forward(self, x, labels):
                return {"loss": torch.nn.functional.mse_loss(self.layer(x), labels)}
        rows = [{"x": a, "labels": b} for a, b in data]
        def fit(t):
            moving = TrialCallback(t)
            arguments = TrainingArguments(output_dir=moving.output_dir, max_steps=STEPS, report_to="none", use_cpu=True,
                                          per_device_train_batch_size=16, save_strategy="no", logging_steps=1,
                                          disable_tqdm=True)
            Trainer(Model(), arguments, train_dataset=rows, callbacks=[moving]).train(
                resume_from_checkpoint=moving.checkpoint)
    """,
}
END = """
with trial(checkpoint_every_s=0.0) as t:
    for fold in range(2):
        fit(t)
        print("fold", fold, "trained", flush=True)
"""


@pytest.mark.parametrize("library", FITS)
def test_a_second_fit_in_a_trial_is_refused_by_name_before_it_trains(tmp_path: Path, library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}")
    script = tmp_path / "folds.py"
    script.write_text(BEGIN + textwrap.dedent(FITS[library]) + END)
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("SPECON_", "MLFLOW_"))}
    own = {"SPECON_TRIAL_ID": "s.a", "SPECON_ATTEMPT": "a1", "SPECON_STATE_ROOT": str(tmp_path), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, str(script)],
        env={**kept, **own, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert "SecondTrialError: s.a has been trained to its end already" in ended.stderr, ended.stderr[-2000:]
    assert ended.returncode == 1
    assert [line for line in ended.stdout.splitlines() if line.startswith("fold")] == ["fold 0 trained"]
    lines = (tmp_path / "s.a" / "points.jsonl").read_bytes().splitlines()
    steps = Counter(point.key for point in map(Point.decode, lines) if point and not point.key.startswith("specon."))
    assert all(count <= STEPS for count in steps.values()), steps
