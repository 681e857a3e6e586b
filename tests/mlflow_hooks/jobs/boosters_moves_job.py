"""Trainings with XGBoost and with LightGBM that stop early."""

from typing import Any

import lightgbm
import numpy as np
import xgboost

import mlflow_hooks.lightgbm
import mlflow_hooks.xgboost
from mlflow_hooks import TrialSession, trial
from tests.mlflow_hooks.jobs.attempts import CURVE, train_whole_and_moved
from tests.mlflow_hooks.jobs.signals import signal_in

ROUNDS, PATIENCE = 20, 6
x = np.random.default_rng(1).random((100, 5))
y = x[:, 0] * x[:, 1] + x[:, 2]


def with_xgboost(t: TrialSession) -> dict[str, Any]:
    """Train with XGBoost, and return what came out."""

    class Signal(xgboost.callback.TrainingCallback):  # type: ignore[misc]  # mypy does not follow into XGBoost
        def before_iteration(self, _model: object, _epoch: int, _log: object) -> bool:
            signal_in(t.next_step)
            return False

    boosting = mlflow_hooks.xgboost.TrialCallback(t, ROUNDS)
    stopping = xgboost.callback.EarlyStopping(rounds=PATIENCE, save_best=True)
    booster = xgboost.train(
        {"max_depth": 2, "nthread": 1, "disable_default_eval_metric": True},
        xgboost.DMatrix(x, y),
        boosting.rounds_left,
        evals=[(xgboost.DMatrix(x, y), "valid")],
        custom_metric=lambda _predicted, _data: ("score", CURVE[t.step]),
        verbose_eval=False,
        xgb_model=boosting.model,
        callbacks=[boosting, Signal(), stopping],
    )
    return {
        "rounds": t.next_step,
        "best": booster.best_iteration,
        "best_score": booster.best_score,
        "kept": booster.num_boosted_rounds(),
        "predicted": [float(value) for value in booster.predict(xgboost.DMatrix(x[:5]))],
    }


def with_lightgbm(t: TrialSession) -> dict[str, Any]:
    """Train with LightGBM, and return what came out."""
    boosting = mlflow_hooks.lightgbm.TrialCallback(t, ROUNDS)
    data = lightgbm.Dataset(x, y)

    def signalled(env: lightgbm.callback.CallbackEnv) -> None:
        signal_in(env.iteration)

    signalled.before_iteration = True  # type: ignore[attr-defined]  # LightGBM asks functions for it
    booster = lightgbm.train(
        {"objective": "regression", "metric": "none", "num_leaves": 4, "num_threads": 1, "verbosity": -1},
        data,
        boosting.rounds_left,
        valid_sets=[lightgbm.Dataset(x, y, reference=data)],
        feval=lambda _predicted, _data: ("score", CURVE[t.next_step], False),
        init_model=boosting.model,
        callbacks=[boosting, lightgbm.early_stopping(PATIENCE, verbose=False), signalled],
    )
    return {
        "rounds": t.next_step,
        "best": booster.best_iteration,
        "best_score": dict(booster.best_score["valid_0"]),
        "predicted": [round(float(value), 12) for value in booster.predict(x[:5])],
    }


def train(kind: str) -> dict[str, Any]:
    """Train with the library of that name."""
    with trial(checkpoint_every_s=0.0) as t:
        return with_xgboost(t) if kind == "xgboost" else with_lightgbm(t)


train_whole_and_moved(train, {"xgboost": (2, 5, 8), "lightgbm": (2, 5, 8)})
