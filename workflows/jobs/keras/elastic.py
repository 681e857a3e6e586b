"""Fully connected classifier of handwritten digits, which one or several workers train. Loss: cross entropy."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from mlflow_hooks import trial
from mlflow_hooks.batches import batch_indices
from mlflow_hooks.keras import KerasVariables
from mlflow_hooks.tensorflow_gang import tensorflow_gang
from workflows.jobs.data import DIGITS, digit_images
from workflows.jobs.settings import TrainingSettings, parse_settings

# Batches as large as this pay for a second worker; for smaller ones they tell each other more than they compute.
DEFAULTS = TrainingSettings(lr=1e-3, steps=100, hidden=512, batch_size=1024, work=4)


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial, as one of its workers."""
    settings, data = parse_settings(DEFAULTS, argv), digit_images()
    with trial() as t:
        strategy = tensorflow_gang(t)
        keras.utils.set_random_seed(settings.seed)
        with strategy.scope():
            hidden = [keras.layers.Dense(settings.hidden, activation="relu") for _ in range(2)]
            model = keras.Sequential([keras.Input((64,)), *hidden, keras.layers.Dense(DIGITS)])
            optimizer = keras.optimizers.Adam(settings.lr)
            t.track(KerasVariables(model, optimizer))

        # Parts of a batch differ in length from step to step, and each length would be traced again.
        @tf.function(  # type: ignore[untyped-decorator]  # TensorFlow ships no types
            input_signature=[
                tf.TensorSpec((None, 64), tf.float32),
                tf.TensorSpec((None,), tf.int64),
                tf.TensorSpec((), tf.float32),
            ]
        )
        def learn(inputs: tf.Tensor, targets: tf.Tensor, batch: tf.Tensor) -> None:
            def replica(inputs: tf.Tensor, targets: tf.Tensor) -> None:
                with tf.GradientTape() as tape:
                    scores = model(inputs, training=True)
                    # A part of the mean over the whole batch: the optimizer adds up the gradients of all workers.
                    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, scores)
                    loss = tf.reduce_sum(losses) / batch
                optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

            strategy.run(replica, args=(inputs, targets))

        for step in t.steps(settings.steps):
            for minibatch in range(step * settings.work, (step + 1) * settings.work):
                rows = batch_indices(len(data.train), settings.batch_size, settings.seed, minibatch)
                own = t.gang.share(rows)
                learn(data.train.inputs[own], data.train.targets[own], np.float32(len(rows)))
            if t.gang.rank == 0:
                scores = model(data.valid.inputs, training=False).numpy()
                losses = keras.losses.sparse_categorical_crossentropy(data.valid.targets, scores, from_logits=True)
                right = scores.argmax(axis=1) == data.valid.targets
                t.log(loss=float(np.mean(losses)), accuracy=float(np.mean(right)))


if __name__ == "__main__":
    main()
