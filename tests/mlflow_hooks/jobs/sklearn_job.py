"""Trainings with scikit-learn that learn bit by bit; ``JOB_MODEL`` says which. It can be told to signal itself."""

import os
import sys
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPRegressor

from mlflow_hooks import trial
from mlflow_hooks.sklearn import fit_in_steps
from tests.mlflow_hooks.jobs.signals import signal_in

STEPS = 24
x = np.random.default_rng(1).random((400, 5))
sums = x[:, 0] * x[:, 1] + x[:, 2]
above = np.where(sums > 0.7, "above", "below")
models: dict[str, tuple[Any, Any, dict[str, int] | None]] = {
    "network": (MLPRegressor(hidden_layer_sizes=(8,), random_state=1), sums, None),
    "linear": (SGDClassifier(random_state=1), above, None),
    "boosting": (GradientBoostingRegressor(subsample=0.5, random_state=1), sums, {"n_estimators": 2}),
}
model, y, grow = models[os.environ.get("JOB_MODEL", "network")]
with trial(checkpoint_every_s=0.0) as t:
    sys.stdout.write(f"start {t.next_step}\n")
    for step in fit_in_steps(t, model, x[:300], y[:300], steps=STEPS, grow=grow):
        signal_in(step)
        t.log(loss=1 - model.score(x[300:], y[300:]))
