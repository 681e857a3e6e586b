"""Trainings with Keras and what people put beside: early stopping, the best model, a plateau, averaged weights."""

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np

from mlflow_hooks import trial
from mlflow_hooks.keras import TrialCallback, shuffled
from mlflow_hooks.state_folder import NOTICES
from tests.mlflow_hooks.jobs.attempts import CURVE, train_whole_and_moved
from tests.mlflow_hooks.jobs.signals import signal_in

sys.modules["tensorflow"] = None  # type: ignore[assignment]  # each attempt would import it for nothing
FILES = Path(tempfile.mkdtemp())
x = np.random.default_rng(0).random((48, 4), dtype="float32")
y = x.sum(1, keepdims=True)


class Curve(keras.callbacks.Callback):  # type: ignore[misc]  # Keras ships no types
    """Logs the curve, and sends ourselves a signal if this is where one is wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[float] = []

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras passes it by name
        """Send it."""
        signal_in(epoch)

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Log it."""
        if logs is not None:
            logs["score"] = CURVE[epoch]
        self.seen.append(CURVE[epoch])


class Behind(keras.callbacks.Callback):  # type: ignore[misc]  # Keras ships no types
    """Stands behind the adapter's own."""


def digest(arrays: Any) -> str:  # noqa: ANN401 - what Keras returns
    """Return a digest of arrays."""
    return hashlib.sha256(b"".join(np.asarray(array).tobytes() for array in arrays)).hexdigest()


def train(kind: str) -> dict[str, Any]:
    """Train with the callbacks of ``kind``, and return what came out."""
    keras.utils.set_random_seed(4)
    with trial(checkpoint_every_s=0.0) as t:
        best, rows = FILES / f"{t.settings.trial_id}.weights.h5", FILES / f"{t.settings.trial_id}.csv"
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.01, use_ema=kind == "ema", ema_momentum=0.9), "mse")
        curve, watch = Curve(), {"monitor": "score", "mode": "min", "min_delta": 0.01}
        stopping = keras.callbacks.EarlyStopping(patience=6, restore_best_weights=True, **watch)
        plateau = keras.callbacks.ReduceLROnPlateau(patience=3, **watch)
        keeper = keras.callbacks.ModelCheckpoint(
            best, monitor="score", mode="min", save_best_only=True, save_weights_only=True
        )
        plain = [curve, stopping, plateau, keeper, keras.callbacks.CSVLogger(rows, append=True)]
        averaged = [curve, keras.callbacks.SwapEMAWeights(swap_on_epoch=True), keras.callbacks.CSVLogger(rows)]
        model.fit(
            shuffled(t, x, y, batch_size=16, seed=9),
            epochs=12,
            initial_epoch=t.next_step,
            verbose=0,
            callbacks=[*plain, TrialCallback(t)] if kind == "plain" else [*averaged, TrialCallback(t), Behind()],
        )
    found: dict[str, Any] = {"weights": digest(model.get_weights()), "seen": curve.seen}
    if kind == "plain":
        found |= {
            "stopped": stopping.stopped_epoch,
            "best_epoch": stopping.best_epoch,
            "lr": float(keras.ops.convert_to_numpy(model.optimizer.learning_rate)),
            "rows": rows.read_text(),
        }
        model.load_weights(best)
        found["kept"] = digest(model.get_weights())
    else:
        found["notices"] = json.loads((t.settings.folder / NOTICES).read_text())
    return found


train_whole_and_moved(train, {"plain": (2, 5, 8), "ema": (3, 7)})
