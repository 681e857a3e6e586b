"""The parameter of a workflow that says whose trials are to go on in it, when Argo's Resubmit makes it again."""

from typing import Final

from hera.workflows import Parameter, Workflow
from hera.workflows.models import Arguments
from hera.workflows.models import Parameter as ParameterModel

from controllers.core.labels import PARAMETER_CONTINUE

DESCRIPTION: Final = "uid of the workflow whose trials are to go on here; empty to start them from nothing"


def let_continue(workflow: Workflow) -> None:
    """Give ``workflow`` the parameter that Argo's Resubmit lets people fill in, unless it has it already."""
    parameter = Parameter(name=PARAMETER_CONTINUE, value="", description=DESCRIPTION)
    given = workflow.arguments
    if PARAMETER_CONTINUE in _parameter_names(given):
        return
    if isinstance(given, Arguments):
        given.parameters = [*(given.parameters or []), parameter.as_argument()]
    else:
        items = given if isinstance(given, list) else [] if given is None else [given]
        workflow.arguments = [*items, parameter]


def _parameter_names(arguments: object) -> set[str | None]:
    if isinstance(arguments, Arguments):
        return _parameter_names(arguments.parameters)
    items = arguments if isinstance(arguments, list) else [arguments]
    named = {item.name for item in items if isinstance(item, Parameter | ParameterModel)}
    return named.union(*(item for item in items if isinstance(item, dict)))
