"""The policy optuna: a pruner of Optuna's says which trials end early."""

from controllers.policies.optuna_pruners.policy import CLASSES as CLASSES
from controllers.policies.optuna_pruners.policy import OptunaPruner as OptunaPruner

__all__ = ["CLASSES", "OptunaPruner"]
