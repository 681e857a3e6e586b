"""What a training script adds to become a trial that may be moved.

Importing this package imports neither a training framework nor MLflow.
"""

from mlflow_hooks.begin import trial
from mlflow_hooks.delivery import deliver_leftovers
from mlflow_hooks.errors import BadEnvironmentError, GangError, HookError, SecondTrialError, StateMismatchError
from mlflow_hooks.interruption import MigrationExit, PeersLostExit
from mlflow_hooks.session import TrialSession
from mlflow_hooks.states import State

__all__ = [
    "BadEnvironmentError",
    "GangError",
    "HookError",
    "MigrationExit",
    "PeersLostExit",
    "SecondTrialError",
    "State",
    "StateMismatchError",
    "TrialSession",
    "deliver_leftovers",
    "trial",
]
