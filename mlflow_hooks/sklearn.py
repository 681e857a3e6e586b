"""scikit-learn: estimators that learn bit by bit, with ``partial_fit`` or ``warm_start``, as trials that can be moved.

::

    with trial() as t:
        model = SGDClassifier(alpha=t.params["alpha"], random_state=1)
        for _ in fit_in_steps(t, model, x, y, steps=100):
            t.log(accuracy=model.score(x_valid, y_valid))

        forest = RandomForestClassifier(random_state=1)  # or: ten trees more in each step
        for _ in fit_in_steps(t, forest, x, y, steps=30, grow={"n_estimators": 10}):
            ...
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlflow_hooks.session import TrialSession
from mlflow_hooks.states import load_random_states, save_random_states

_FILE = "estimator.joblib"


class SklearnState:
    """An estimator with all that it has learned, and the random states of Python and NumPy.

    The file is a pickle, as scikit-learn's own persistence is: it runs code when it is loaded, so the folder must be
    one that only you write to.

    Args:
        estimator: it stays the same object when it is restored.

    Attributes:
        of_model: it holds what belongs to a model, and none of the script's own variables.
    """

    of_model = True

    def __init__(self, estimator: Any) -> None:  # noqa: ANN401 - scikit-learn ships no types
        self._estimator = estimator

    def save(self, folder: Path) -> None:
        """Write the estimator into ``folder``."""
        import joblib  # noqa: PLC0415 - importing the hooks must not import scikit-learn

        joblib.dump(self._estimator, folder / _FILE)
        save_random_states(folder)

    def load(self, folder: Path) -> None:
        """Take back what ``save`` wrote, parameters included."""
        import joblib  # noqa: PLC0415 - importing the hooks must not import scikit-learn

        saved = vars(joblib.load(folder / _FILE))
        vars(self._estimator).clear()
        vars(self._estimator).update(saved)
        load_random_states(folder)


def fit_in_steps(
    trial: TrialSession,
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    x: Any,  # noqa: ANN401 - an array, a table or a sparse matrix
    y: Any = None,  # noqa: ANN401 - as above
    *,
    steps: int,
    grow: Mapping[str, int] | None = None,
) -> Iterator[int]:
    """Train ``estimator`` in ``steps`` steps, and yield each when it is trained, for you to log what came out.

    A step is one ``partial_fit`` over all of ``x``. With ``grow``, it is a ``fit`` with ``warm_start`` after the
    parameter named there has grown: ``n_estimators`` of forests, ``max_iter`` of ``HistGradientBoosting...``.

    Args:
        trial: the trial, inside its ``with`` block.
        estimator: give it a ``random_state``; a number is enough.
        x: inputs, shape ``(n, ...)``.
        y: targets, shape ``(n, ...)``; None where the estimator takes none.
        steps: how many steps there are in all.
        grow: a parameter that counts, and how much it grows in a step, as in ``{"n_estimators": 10}``.

    Raises:
        TypeError: the estimator has no ``partial_fit``, and nothing is said to grow.
    """
    if grow is None and not hasattr(estimator, "partial_fit"):
        message = f"{type(estimator).__name__} has no partial_fit: say what grows, as in grow={{'n_estimators': 10}}"
        raise TypeError(message)
    trial.track(SklearnState(estimator), "sklearn")
    labels = _classes(estimator, y)
    for step in trial.steps(steps):
        if grow is None:
            estimator.partial_fit(x, y, **labels)
        else:
            grown = {name: by * (step + 1) for name, by in grow.items()}
            estimator.set_params(warm_start=True, **grown).fit(x, y)
        yield step


def _classes(estimator: Any, y: Any) -> dict[str, Any]:  # noqa: ANN401 - scikit-learn ships no types
    """Return what ``partial_fit`` of a classifier must know at its first call: all classes there are."""
    import numpy as np  # noqa: PLC0415 - importing the hooks must not import NumPy
    from sklearn.base import is_classifier  # noqa: PLC0415 - importing the hooks must not import scikit-learn

    return {"classes": np.unique(y)} if is_classifier(estimator) else {}
