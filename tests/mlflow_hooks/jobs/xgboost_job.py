"""A training with XGBoost; it can be told to signal itself."""

import sys

import numpy as np
import xgboost

from mlflow_hooks import trial
from mlflow_hooks.xgboost import TrialCallback
from tests.mlflow_hooks.jobs.signals import forgotten, signal_in

ROUNDS = 24
x = np.random.default_rng(1).random((400, 5))
y = x[:, 0] * x[:, 1] + x[:, 2]


class SignalInMidRound(xgboost.callback.TrainingCallback):  # type: ignore[misc]  # mypy does not follow into XGBoost
    """Sends a signal before the round is made."""

    def before_iteration(self, _model: object, _epoch: int, _log: object) -> bool:
        """Send it if this is the round."""
        signal_in(t.next_step)
        return False


with trial(checkpoint_every_s=0.0) as t:
    boosting = TrialCallback(t, ROUNDS, seed=7)
    sys.stdout.write(f"start {t.next_step}\n")
    xgboost.train(
        {"max_depth": 3, "eta": 0.2, "nthread": 1},
        xgboost.DMatrix(x[:300], y[:300]),
        boosting.rounds_left,
        evals=[(xgboost.DMatrix(x[300:], y[300:]), "valid")],
        verbose_eval=False,
        xgb_model=None if forgotten() else boosting.model,
        callbacks=[boosting, SignalInMidRound()],
    )
