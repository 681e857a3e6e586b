"""A Keras training with dropout and batch normalisation; it can be told to signal itself in mid-epoch."""

import hashlib
import os
import signal
import sys
import time
from typing import Any

from mlflow_hooks import trial
from mlflow_hooks.keras import TrialCallback, shuffled
from tests.mlflow_hooks.jobs.beside import write_beside

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
EPOCHS = 8
write_beside()
signal_at, _, signal_name = os.environ.get("JOB_SIGNAL", "-1:SIGTERM").partition(":")
with trial(checkpoint_every_s=0.0) as t:
    import keras
    import numpy as np

    keras.utils.set_random_seed(4)
    x = np.random.default_rng(0).random((96, 4), dtype="float32")
    y = x.sum(1, keepdims=True)

    class SignalInMidEpoch(keras.callbacks.Callback):  # type: ignore[misc]  # Keras ships no types
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras passes it by name
            time.sleep(0.01)
            if (t.step, batch) == (int(signal_at), 2):
                os.kill(os.getpid(), signal.Signals[signal_name])

    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(16, "relu"),
            keras.layers.Dropout(0.3),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    sys.stdout.write(f"start {t.next_step}\n")
    if os.environ.get("JOB_DATA") == "arrays":
        data: dict[str, Any] = {"x": x, "y": y, "batch_size": 16}
    else:
        data = {"x": shuffled(t, x, y, batch_size=16, seed=9)}
    model.fit(
        **data,
        validation_data=(x[:32], y[:32]),
        epochs=EPOCHS,
        initial_epoch=t.next_step,
        verbose=0,
        callbacks=[SignalInMidEpoch(), TrialCallback(t)],
    )
weights = b"".join(np.asarray(value).tobytes() for value in model.get_weights())
sys.stdout.write(f"weights {hashlib.sha256(weights).hexdigest()}\n")
