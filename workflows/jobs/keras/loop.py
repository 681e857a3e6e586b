"""The training that the Keras jobs share."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras

from mlflow_hooks import trial
from mlflow_hooks.batches import batch_indices
from mlflow_hooks.keras import TrialCallback
from workflows.jobs.data import DIGITS, Array, Dataset, Examples
from workflows.jobs.settings import TrainingSettings


def classifier(*layers: keras.layers.Layer, settings: TrainingSettings) -> keras.Model:
    """Return the layers with a softmax over the digits on top. Loss: cross entropy (the thesis's "Softmax")."""
    model = keras.Sequential([*layers, keras.layers.Dense(DIGITS, activation="softmax")])
    model.compile(keras.optimizers.Adam(settings.lr), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def fit(model: keras.Model, data: Dataset, settings: TrainingSettings) -> None:
    """Train a compiled model as one trial; an epoch of Keras is one step of the trial."""
    model.build((None, *data.train.inputs.shape[1:]))  # there must be weights to restore a checkpoint into
    with trial() as t:
        model.fit(
            _minibatches(data.train, settings, t.next_step),
            steps_per_epoch=settings.work,
            initial_epoch=t.next_step,
            epochs=settings.steps,
            validation_data=(data.valid.inputs, data.valid.targets),
            validation_batch_size=len(data.valid),
            callbacks=[ValidationCallback(t)],
            shuffle=False,  # already done
            verbose=0,
        )


class ValidationCallback(TrialCallback):
    """Reports what validation found, so that ``loss`` means the same as in the PyTorch jobs."""

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Log the epoch's validation metrics under the names of the metrics."""
        validation = {name: value for name, value in (logs or {}).items() if name.startswith("val_")}
        super().on_epoch_end(epoch, {name.removeprefix("val_"): value for name, value in validation.items()})


def _minibatches(examples: Examples, settings: TrainingSettings, first_step: int) -> Iterator[tuple[Array, Array]]:
    """Yield the minibatches from ``first_step`` on: the same ones whether or not the trial was resumed there."""
    for minibatch in range(first_step * settings.work, settings.steps * settings.work):
        rows = batch_indices(len(examples), settings.batch_size, settings.seed, minibatch)
        yield examples.inputs[rows], examples.targets[rows]
