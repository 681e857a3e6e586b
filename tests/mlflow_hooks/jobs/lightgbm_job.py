"""A training with LightGBM; it can be told to signal itself."""

import sys

import lightgbm
import numpy as np

from mlflow_hooks import trial
from mlflow_hooks.lightgbm import TrialCallback
from tests.mlflow_hooks.jobs.signals import forgotten, signal_in

ROUNDS = 24
x = np.random.default_rng(1).random((400, 5))
y = x[:, 0] * x[:, 1] + x[:, 2]


class SignalInMidRound:
    """Sends a signal before the round is made."""

    def __init__(self) -> None:
        self.before_iteration = True

    def __call__(self, env: lightgbm.callback.CallbackEnv) -> None:
        signal_in(env.iteration)


with trial(checkpoint_every_s=0.0) as t:
    train = lightgbm.Dataset(x[:300], y[:300])
    boosting = TrialCallback(t, ROUNDS)
    sys.stdout.write(f"start {t.next_step}\n")
    if boosting.rounds_left:
        lightgbm.train(
            {"objective": "regression", "num_leaves": 7, "deterministic": True, "num_threads": 1, "verbosity": -1},
            train,
            boosting.rounds_left,
            valid_sets=[lightgbm.Dataset(x[300:], y[300:], reference=train)],
            init_model=None if forgotten() else boosting.model,
            callbacks=[boosting, SignalInMidRound()],
        )
