"""What a script calls to become an attempt of a trial."""

from collections.abc import Mapping
from typing import Any

from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.session import TrialSession
from mlflow_hooks.settings import read_settings


def trial(
    params: Mapping[str, Any] | None = None,
    objective: str | None = None,
    direction: str | None = None,
    *,
    checkpoint_every_s: float = 10.0,
    flush_s: float = 10.0,
) -> TrialSession:
    """Make this script one attempt of a trial, to be used in a ``with`` statement.

    All arguments but ``checkpoint_every_s`` are defaults: what a sweep sets in the environment wins.

    Args:
        params: hyperparameters, by name.
        objective: name of the metric that says how good the model is.
        direction: ``"minimize"`` or ``"maximize"``.
        checkpoint_every_s: seconds between periodic checkpoints; they come less often where
            saving would take more than 5 % of the time, 10 % where one takes longer than 15 s.
        flush_s: seconds to wait at the end for MLflow to take the rest.

    An attempt trains its trial in one ``with trial()``. By hand, where no sweep names a trial, each call makes a trial
    of its own.

    Raises:
        BadEnvironmentError: naming the variable or argument, and its value.
        SecondTrialError: the attempt has its trial already, in this process or another one.
    """
    for name, seconds in (("checkpoint_every_s", checkpoint_every_s), ("flush_s", flush_s)):
        if not seconds >= 0:
            message = f"{name} must be 0 or more seconds, not {seconds!r}"
            raise BadEnvironmentError(message)
    return TrialSession(read_settings(params, objective, direction, flush_s), checkpoint_every_s)
