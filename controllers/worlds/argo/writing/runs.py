"""Which run in MLflow an attempt logs to."""

from collections.abc import Mapping
from typing import Any, Protocol


class RunOf(Protocol):
    """Tells the run in MLflow that an attempt shall log to."""

    def __call__(self, trial: str, params: Mapping[str, Any], *, may_make: bool) -> str:
        """Return its id; empty where there is none, or MLflow is away.

        Args:
            trial: id of the trial.
            params: its hyperparameters.
            may_make: whether to make one; else it is one that the trial's script has made before.
        """
        ...
