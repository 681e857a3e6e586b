"""What a sweep author imports: the names below, and every policy of the registry.

Loaded on use: the controller is a command of this package, and needs no Hera.
"""

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controllers.policies.registry import *  # noqa: F403 - the registry alone lists the policies
    from hera_specon.errors import SpaceError as SpaceError
    from hera_specon.errors import SweepError as SweepError
    from hera_specon.printed_metrics import printed as printed
    from hera_specon.printed_metrics import printed_json as printed_json
    from hera_specon.running import load as load
    from hera_specon.running import run as run
    from hera_specon.search import cmaes as cmaes
    from hera_specon.search import grid as grid
    from hera_specon.search import random as random
    from hera_specon.search import sampler as sampler
    from hera_specon.search import tpe as tpe
    from hera_specon.settings import Objective as Objective
    from hera_specon.settings import at_random as at_random
    from hera_specon.settings import every as every
    from hera_specon.settings import maximize as maximize
    from hera_specon.settings import minimize as minimize
    from hera_specon.several_objectives import subject_to as subject_to
    from hera_specon.space import choice as choice
    from hera_specon.space import integer as integer
    from hera_specon.space import log_uniform as log_uniform
    from hera_specon.space import uniform as uniform
    from hera_specon.space import when as when
    from hera_specon.stops import after as after
    from hera_specon.stops import budget as budget
    from hera_specon.stops import plateau as plateau
    from hera_specon.stops import terminator as terminator
    from hera_specon.stops import value as value
    from hera_specon.sweep import FunctionSweep as FunctionSweep
    from hera_specon.sweep import Sweep as Sweep


def _find_our_controllers() -> None:
    """Import the package that lies beside this one: a project, or a folder of PYTHONPATH, may have one of that name.

    Raises:
        ImportError: this process has loaded such a package already.
    """
    here = Path(__file__).resolve().parents[1]
    sys.path.insert(0, str(here))
    try:
        package = importlib.import_module("controllers")
    finally:
        sys.path.remove(str(here))
    where = next(iter(getattr(package, "__path__", [])), None) or package.__file__
    if where is None or Path(where).resolve() != here / "controllers":
        message = (
            f"hera_specon has a package of its own named controllers, and {where} was imported before under that name: "
            "rename that, or use hera_specon in another process"
        )
        raise ImportError(message, name="controllers")


_find_our_controllers()

_REGISTRY = "controllers.policies.registry"
_HOMES = {
    "at_random": "hera_specon.settings",
    "every": "hera_specon.settings",
    "SpaceError": "hera_specon.errors",
    "SweepError": "hera_specon.errors",
    "load": "hera_specon.running",
    "run": "hera_specon.running",
    "cmaes": "hera_specon.search",
    "grid": "hera_specon.search",
    "random": "hera_specon.search",
    "sampler": "hera_specon.search",
    "tpe": "hera_specon.search",
    "Objective": "hera_specon.settings",
    "maximize": "hera_specon.settings",
    "minimize": "hera_specon.settings",
    "subject_to": "hera_specon.several_objectives",
    "printed": "hera_specon.printed_metrics",
    "printed_json": "hera_specon.printed_metrics",
    "choice": "hera_specon.space",
    "integer": "hera_specon.space",
    "log_uniform": "hera_specon.space",
    "uniform": "hera_specon.space",
    "when": "hera_specon.space",
    "after": "hera_specon.stops",
    "budget": "hera_specon.stops",
    "plateau": "hera_specon.stops",
    "terminator": "hera_specon.stops",
    "value": "hera_specon.stops",
    "FunctionSweep": "hera_specon.sweep",
    "Sweep": "hera_specon.sweep",
}


if not TYPE_CHECKING:  # a type checker is to complain of names that there are not

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - of any kind
        """Return what ``name`` stands for."""
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        # Policies are classes. Without a look at the first letter, importing any module of this package would load
        # them all, because Python asks the package for the name of the module first.
        if name == "__all__" or name[:1].isupper():
            policies = {kind.__name__: kind for kind in importlib.import_module(_REGISTRY).POLICIES.values()}
            if name == "__all__":
                return sorted(_HOMES.keys() | policies)
            if name in policies:
                return policies[name]
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
