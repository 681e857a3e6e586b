"""What a sweep author imports."""

from controllers.policies import CBalancer, Deadline, Default, DQoES, FlowCon, FlowCon2, ProCon, SpeCon, Tradl
from hera_specon.arrivals import at_random, every
from hera_specon.errors import SpaceError, SweepError
from hera_specon.objective import Objective, maximize, minimize
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
