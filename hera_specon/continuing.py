"""How a resubmitted workflow is told to go on with the trials of an earlier one."""

from typing import Final

from hera.workflows import Parameter, Workflow
from hera.workflows.models import Arguments
from hera.workflows.models import Parameter as ParameterModel

from controllers.core.labels import PARAMETER_CONTINUE

DESCRIPTION: Final = "uid of the workflow whose trials are to go on here; empty to start them anew"


def let_continue(workflow: Workflow) -> None:
    """Give ``workflow`` the parameter that Argo's Resubmit lets people fill in, unless it has it already."""
    parameter = Parameter(name=PARAMETER_CONTINUE, value="", description=DESCRIPTION)
    given = workflow.arguments
    if PARAMETER_CONTINUE in _names(given):
        return
    if isinstance(given, Arguments):
        given.parameters = [*(given.parameters or []), parameter.as_argument()]
    else:
        items = given if isinstance(given, list) else [] if given is None else [given]
        workflow.arguments = [*items, parameter]


def _names(arguments: object) -> set[str | None]:
    if isinstance(arguments, Arguments):
        return _names(arguments.parameters)
    items = arguments if isinstance(arguments, list) else [arguments]
    named = {item.name for item in items if isinstance(item, Parameter | ParameterModel)}
    return named.union(*(item for item in items if isinstance(item, dict)))
