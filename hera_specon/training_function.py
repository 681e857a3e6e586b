"""The source of a script that calls a training function with a trial's hyperparameters."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hera.workflows import InlineScriptConstructor, Script

from hera_specon.errors import SweepError
from hera_specon.space import Space
from hera_specon.trial_template import placeholder
from mlflow_hooks.contract import ENV_PARAMS

_HEAD: Final = f"""\
from __future__ import annotations

import json
import os
import sys

sys.path.append(os.getcwd())


def _given(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


_hyperparameters = json.loads(os.environ[{ENV_PARAMS!r}])
"""


@dataclass(kw_only=True)
class TrainingFunctionConstructor(InlineScriptConstructor):
    """Puts a whole function into the script, and calls it.

    Unlike Hera's inline constructor, which strips the ``def``, it leaves ``return`` legal and takes the
    hyperparameters from the environment as JSON, so they keep their types and nothing is quoted twice. As there,
    the body must import what it uses.
    """

    hyperparameters: tuple[str, ...]

    def generate_source(self, instance: Script) -> str:
        """Return the script for the function in ``instance.source``."""
        function = instance.source
        if not inspect.isfunction(function):
            problem = f"a training function is written with def, unlike {function!r}"
            raise SweepError(problem)
        others = [name for name in inspect.signature(function).parameters if name not in self.hyperparameters]
        given = "".join(f", {name}=_given(r'''{placeholder(name)}''')" for name in others)
        return f"{_HEAD}\n\n{_definition(function)}\n\n\n{function.__name__}(**_hyperparameters{given})\n"


def check_signature(function: Callable[..., object], space: Space) -> None:
    """Check that ``function`` can be called with every hyperparameter by name.

    Raises:
        SweepError: It lacks one, or takes arguments that have no name.
    """
    parameters = inspect.signature(function).parameters
    missing = sorted(set(space) - set(parameters))
    if missing:
        problem = f"{function.__name__}() takes no argument named {', '.join(map(repr, missing))}"
        raise SweepError(problem)
    named = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    odd = sorted(name for name, parameter in parameters.items() if parameter.kind not in named)
    if odd:
        problem = f"{function.__name__}() must take every argument by name, unlike {', '.join(map(repr, odd))}"
        raise SweepError(problem)


def _definition(function: Callable[..., object]) -> str:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:
        problem = f"cannot read the source of {function!r}; write it with def in a file"
        raise SweepError(problem) from error
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        problem = f"a training function is written with def, unlike {function!r}"
        raise SweepError(problem)
    definition.decorator_list = []
    return ast.unparse(definition)
