"""Optuna, for those that ask its pruners or its samplers."""

import warnings
from types import ModuleType


def quiet_optuna() -> ModuleType:
    """Return Optuna, which tells of each trial and of each experimental class unless it is asked not to."""
    import optuna  # noqa: PLC0415 - it takes a third of a second, and few sweeps use it

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna
