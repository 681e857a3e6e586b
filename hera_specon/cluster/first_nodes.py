"""Where the trials of an earlier workflow first ran, so that another one can begin the same way."""

from collections.abc import Mapping

from controllers.core.errors import SpeconError
from controllers.worlds.argo.api import Json
from hera_specon.cluster.records import workflow_record


def first_nodes(workflow: Json, sweeps: tuple[str, ...]) -> Mapping[str, str]:
    """Return the node of each trial's first attempt in ``workflow``, by ``<sweep>.<number>``.

    Args:
        workflow: As the cluster has it.
        sweeps: Names of the sweeps that are about to be submitted; trials of others are left out.

    Raises:
        SpeconError: None of their trials has run in it, as far as Argo still knows.
    """
    record = workflow_record(workflow)
    steps = [step for step in record.steps.values() if step.definition.sweep in sweeps]
    found = {step.definition.name: step.attempts[0].node for step in steps if step.attempts and step.attempts[0].node}
    if not found:
        message = f"workflow {record.name!r} has no trial of {', '.join(sweeps)} that ran, as far as Argo still knows"
        raise SpeconError(message)
    return found
