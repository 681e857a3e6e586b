"""A pruner of Optuna's, as its user makes it, as the policy that stops trials by it."""

import inspect

from controllers.policies.optuna_pruners import CLASSES, OptunaPruner
from controllers.policies.registry import policy_spec
from hera_specon.errors import SweepError


def pruner_policy(pruner: object) -> str:
    """Return the spec string of the policy that stops trials as ``pruner`` would, such as ``optuna:pruner=median``.

    Optuna's pruners do not tell their settings, so these are read where Optuna keeps them: under the name of the
    argument, with an underscore.

    Raises:
        SweepError: It is no pruner of Optuna's, or has settings that no policy can be written with.
        PolicyParameterError: Its settings make no sense.
    """
    kinds = {name: kind for kind, name in CLASSES.items()}
    name = type(pruner).__name__
    if name not in kinds or not type(pruner).__module__.startswith("optuna."):
        problem = f"pruner= is one of Optuna's ({', '.join(sorted(kinds))}), not {pruner!r}"
        raise SweepError(problem)
    settings: dict[str, object] = {}
    for argument in inspect.signature(type(pruner)).parameters.values():
        value = getattr(pruner, f"_{argument.name}", argument.default)
        if argument.name == "wrapped_pruner" and value is None:
            continue
        # What was "auto" is None or still the text; a bound that was left out is infinite.
        if value in (None, "auto", argument.default, float("inf"), float("-inf")):
            continue
        if argument.name not in OptunaPruner.model_fields:
            problem = f"pruner= {name}({argument.name}={value!r}) cannot be written into a workflow"
            raise SweepError(problem)
        settings[argument.name] = value
    return policy_spec(OptunaPruner(pruner=kinds[name], **settings))
