"""A small Keras model that one or several workers train in a loop of their own."""

import os
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from mlflow_hooks import trial
from mlflow_hooks.batches import batch_indices
from mlflow_hooks.keras import KerasVariables
from mlflow_hooks.tensorflow_gang import tensorflow_gang
from tests.mlflow_hooks.jobs.signals import signal_in

STEPS, ROWS, BATCH = int(os.environ.get("JOB_STEPS", "30")), 102, 25
inputs = np.random.default_rng(1).standard_normal((ROWS, 8), dtype=np.float32)
targets = inputs.sum(axis=1, keepdims=True) > 0

with trial(checkpoint_every_s=3600) as t:
    strategy = tensorflow_gang(t, silence_s=20)
    keras.utils.set_random_seed(7)
    with strategy.scope():
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)])
        optimizer = keras.optimizers.Adam(0.01)
        t.track(KerasVariables(model, optimizer))

    @tf.function(  # type: ignore[untyped-decorator]  # TensorFlow ships no types
        input_signature=[
            tf.TensorSpec((None, 8), tf.float32), tf.TensorSpec((None, 1), tf.float32), tf.TensorSpec((), tf.float32)
        ]
    )  # fmt: skip
    def train(x: tf.Tensor, y: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
        def replica(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                losses = tf.nn.sigmoid_cross_entropy_with_logits(y, model(x, training=True))
                loss = tf.reduce_sum(losses) / batch
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
            return loss

        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    for step in t.steps(STEPS):
        if t.gang.rank == int(os.environ.get("JOB_RANK", "0")):
            signal_in(step)
        rows = batch_indices(ROWS, BATCH, 5, step)
        share = t.gang.share(rows)
        t.log(loss=train(inputs[share], targets[share].astype(np.float32), np.float32(len(rows))))
        Path(t.settings.folder, f"{t.settings.attempt}-{t.gang.rank}").write_text(str(step))
sys.stdout.write("ended well\n")
