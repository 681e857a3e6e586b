"""LightGBM: one callback makes ``train`` a trial that can be moved. A step is a boosting round.

::

    with trial() as t:
        boosting = TrialCallback(t, rounds=200)
        if boosting.rounds_left:
            booster = lightgbm.train(
                {"objective": "regression", "learning_rate": t.params["rate"]},
                train_data,
                boosting.rounds_left,
                valid_sets=[valid_data],
                init_model=boosting.model,
                callbacks=[boosting],
            )
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mlflow_hooks.boosters import BoosterState
from mlflow_hooks.errors import StateMismatchError
from mlflow_hooks.session import TrialSession
from mlflow_hooks.states import callbacks_around

if TYPE_CHECKING:
    from lightgbm.callback import CallbackEnv

_EARLY_STOPPING: Final = "_EarlyStoppingCallback"
_BEFORE_EARLY_STOPPING = 25
"""LightGBM's own callbacks log at 10, record at 20 and stop early at 30."""


class TrialCallback:
    """Logs, saves and leaves between the rounds of ``lightgbm.train`` or of an estimator's ``fit``.

    Make it just before the training, after everything else that the trial tracks. Metrics are named as in
    ``valid_0-l2``. LightGBM keeps no state of its random numbers: with ``bagging_fraction`` or ``feature_fraction`` a
    training that moved is as good as one that did not, but not the same. Early stopping comes back.

    Args:
        trial: the trial, inside its ``with`` block.
        rounds: how many rounds there are in all.

    Raises:
        MigrationExit: the attempt was asked to leave before it trained at all.
    """

    def __init__(self, trial: TrialSession, rounds: int) -> None:
        self.order = _BEFORE_EARLY_STOPPING
        self.before_iteration = False
        self._trial = trial
        self._rounds = rounds
        self._state = BoosterState("model.txt")
        self._past = _Past()
        trial.track(self._state, "lightgbm")
        self._state.others.meet([self._past])
        trial.begin(rounds)
        self.first = trial.next_step

    @property
    def rounds_left(self) -> int:
        """How many rounds this attempt has to make: pass it as ``num_boost_round``. LightGBM refuses a 0."""
        return max(0, self._rounds - self.first)

    @property
    def model(self) -> str | None:
        """What earlier attempts made: pass it as ``init_model``."""
        return self._state.path

    def __call__(self, env: "CallbackEnv") -> None:
        """Log the round that is done, and save or leave if it is time to.

        Raises:
            StateMismatchError: the training does not go on with the model that earlier attempts made.
        """
        step = env.iteration
        if step != self._trial.next_step:
            message = f"LightGBM made round {step}, not {self._trial.next_step}: pass init_model=callback.model"
            raise StateMismatchError(message)
        if step == self.first and self._past.rounds:
            self._tell_early_stopping(env)
        results = env.evaluation_result_list or []
        self._past.rounds.append((step, tuple(map(tuple, results))))
        self._state.booster = env.model
        self._trial.log({f"{data}-{name}": value for data, name, value, *_ in results}, step=step)
        self._trial.finish_step(step)
        if step + 1 == self._rounds:  # LightGBM does not tell its callbacks when it ends
            self._trial.finish_training()

    def _tell_early_stopping(self, env: "CallbackEnv") -> None:
        """Have early stopping hear of the rounds of earlier attempts: it forgets all where an attempt begins."""
        around, begin = callbacks_around(self), self._past.rounds[0][0]
        kind = type((env.evaluation_result_list or [()])[0])
        for place, other in enumerate(around):
            if type(other).__name__ == _EARLY_STOPPING:
                # Before what is past, since it may end the training.
                around[place] = partial(_as_if_begun, other, begin)
                for step, rows in self._past.rounds:
                    # Plain tuples before LightGBM 4.7.
                    results = [kind(*row) if hasattr(kind, "_fields") else row for row in rows]
                    around[place](_changed(env, iteration=step, evaluation_result_list=results))


class _Past:
    """What each round so far came to, with its number."""

    def __init__(self) -> None:
        self.rounds: list[tuple[int, tuple[Any, ...]]] = []


def _as_if_begun(callback: Callable[["CallbackEnv"], None], begin: int, env: "CallbackEnv") -> None:
    """Call ``callback`` as if this were the attempt that began with round ``begin``."""
    callback(_changed(env, begin_iteration=begin))


def _changed(env: "CallbackEnv", **changes: Any) -> "CallbackEnv":  # noqa: ANN401 - the fields of several types
    """Return ``env`` with other values; it is a named tuple before LightGBM 4.7, and a data class since."""
    fields = ("model", "params", "iteration", "begin_iteration", "end_iteration", "evaluation_result_list")
    return type(env)(**{name: changes.get(name, getattr(env, name)) for name in fields})
