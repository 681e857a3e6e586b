"""What a sweep author imports. Loaded on use: the controller is a command of this package, and needs no Hera."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controllers.policies import CBalancer, Deadline, Default, DQoES, FlowCon, FlowCon2, ProCon, SpeCon, Tradl
    from hera_specon.errors import SpaceError, SweepError
    from hera_specon.settings import Objective, at_random, every, maximize, minimize
    from hera_specon.space import choice, integer, log_uniform, uniform
    from hera_specon.sweep import FunctionSweep, Sweep

__all__ = [
    "CBalancer",
    "DQoES",
    "Deadline",
    "Default",
    "FlowCon",
    "FlowCon2",
    "FunctionSweep",
    "Objective",
    "ProCon",
    "SpaceError",
    "SpeCon",
    "Sweep",
    "SweepError",
    "Tradl",
    "at_random",
    "choice",
    "every",
    "integer",
    "log_uniform",
    "maximize",
    "minimize",
    "uniform",
]

_HOMES = {
    "CBalancer": "controllers.policies",
    "DQoES": "controllers.policies",
    "Deadline": "controllers.policies",
    "Default": "controllers.policies",
    "FlowCon": "controllers.policies",
    "FlowCon2": "controllers.policies",
    "ProCon": "controllers.policies",
    "SpeCon": "controllers.policies",
    "Tradl": "controllers.policies",
    "at_random": "hera_specon.settings",
    "every": "hera_specon.settings",
    "SpaceError": "hera_specon.errors",
    "SweepError": "hera_specon.errors",
    "Objective": "hera_specon.settings",
    "maximize": "hera_specon.settings",
    "minimize": "hera_specon.settings",
    "choice": "hera_specon.space",
    "integer": "hera_specon.space",
    "log_uniform": "hera_specon.space",
    "uniform": "hera_specon.space",
    "FunctionSweep": "hera_specon.sweep",
    "Sweep": "hera_specon.sweep",
}


if not TYPE_CHECKING:  # a type checker is to complain of names that there are not

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - of any kind
        """Return what ``name`` stands for."""
        if name not in _HOMES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(importlib.import_module(_HOMES[name]), name)
