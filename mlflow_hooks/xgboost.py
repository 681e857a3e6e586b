"""XGBoost: one callback makes ``train`` a trial that can be moved. A step is a boosting round.

::

    with trial() as t:
        boosting = TrialCallback(t, rounds=200, seed=1)
        booster = xgboost.train(
            {"objective": "reg:squarederror", "eta": t.params["eta"]},
            train_data,
            boosting.rounds_left,
            evals=[(valid_data, "valid")],
            xgb_model=boosting.model,
            callbacks=[boosting],
        )
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xgboost.callback import TrainingCallback

from mlflow_hooks.boosters import BoosterState
from mlflow_hooks.errors import StateMismatchError
from mlflow_hooks.session import TrialSession
from mlflow_hooks.states import callbacks_around

if TYPE_CHECKING:
    from xgboost import Booster


class TrialCallback(TrainingCallback):  # type: ignore[misc]  # mypy does not follow into XGBoost
    """Logs, saves and leaves between the rounds of ``xgboost.train`` or of an estimator's ``fit``.

    Put it first in the list, so that a round counts before early stopping ends the training. Metrics are named as in
    ``valid-rmse``. Models of trees only: ``gblinear`` does not know its rounds any more once it is saved.

    Args:
        trial: the trial, inside its ``with`` block.
        rounds: how many rounds there are in all.
        seed: makes what a round draws at random depend on this number and the round alone. Without it, a training
            with ``subsample`` draws after a move what it drew at its start. XGBoost 3.2 still draws other rows in the
            first round after a move than it would have: the rest of that training is as good, but not the same.

    Attributes:
        first: the round that this attempt begins with; XGBoost itself counts from 0 in each attempt.
    """

    def __init__(self, trial: TrialSession, rounds: int, *, seed: int | None = None) -> None:
        super().__init__()
        self._trial = trial
        self._rounds = rounds
        self._seed = seed
        self._state = BoosterState("model.ubj")
        self._done = False  # whether a round is made and not finished
        trial.track(self._state, "xgboost")
        self.first = trial.next_step

    @property
    def rounds_left(self) -> int:
        """How many rounds this attempt has to make: pass it as ``num_boost_round``."""
        return max(0, self._rounds - self.first)

    @property
    def model(self) -> str | None:
        """What earlier attempts made: pass it as ``xgb_model``."""
        return self._state.path

    def before_training(self, model: "Booster") -> "Booster":
        """Begin.

        Raises:
            SecondTrialError: the trial has trained all of its rounds already.
            StateMismatchError: the training does not go on with the model that earlier attempts made.
            TypeError: this is ``xgboost.cv``, whose boosters cannot be saved.
        """
        if not hasattr(model, "save_model"):
            message = (
                "xgboost.cv trains several boosters, which TrialCallback cannot save: "
                "call xgboost.train for each fold, and make each fold a step of the trial"
            )
            raise TypeError(message)
        self._trial.begin(self._rounds)
        if model.num_boosted_rounds() != self.first:
            message = (
                f"the booster begins with {model.num_boosted_rounds()} rounds, not {self.first}:"
                " pass xgb_model=callback.model"
            )
            raise StateMismatchError(message)
        self._state.booster = model
        self._state.others.meet(callback for callback in callbacks_around(self) if callback is not self)
        return model

    def before_iteration(self, model: "Booster", epoch: int, evals_log: object) -> bool:  # noqa: ARG002 - XGBoost passes it
        """Finish the round before, which all callbacks have seen by now, and give this one its own random numbers."""
        self._finish_round()
        self._trial.step = self.first + epoch
        if self._seed is not None:
            # XGBoost seeds its generator again whenever the parameter changes.
            model.set_param("seed", str(self._seed + self._trial.step))
        return False

    def after_iteration(
        self, model: "Booster", epoch: int, evals_log: Mapping[str, Mapping[str, Sequence[float]]]
    ) -> bool:
        """Log the round."""
        self._state.booster = model
        metrics = {f"{data}-{name}": values[-1] for data, log in evals_log.items() for name, values in log.items()}
        self._trial.log(metrics, step=self.first + epoch)
        self._done = True
        return False

    def after_training(self, model: "Booster") -> "Booster":
        """Finish the last round, and save what came out."""
        self._state.booster = model
        self._finish_round()
        self._trial.finish_training()
        return model

    def _finish_round(self) -> None:
        """Save or leave if it is time to, where a round is done."""
        done, self._done = self._done, False
        if done:
            self._trial.finish_step(self._trial.step)
