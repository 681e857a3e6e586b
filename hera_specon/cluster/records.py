"""Workflows and pods of a cluster as the controller reads them, for one look."""

from collections.abc import Sequence

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.worlds.argo.api import PODS, WORKFLOWS, Json
from controllers.worlds.argo.pods import LABEL_WORKFLOW, PodRecord, project_pod
from controllers.worlds.argo.untrusted import mappings, text
from controllers.worlds.argo.workflows import WorkflowRecord, project_workflow
from hera_specon.cluster.access import Access

_PAGE = 200
_MOST_NAMED = 20


def workflow_record(workflow: Json) -> WorkflowRecord:
    """Return the record of a workflow, however long ago it ended.

    Raises:
        SpeconError: It has no sweep.
    """
    status = workflow.get("status")
    # Those that ended long ago are left out by the controller; a person may still ask for them.
    kept = {key: value for key, value in status.items() if key != "finishedAt"} if isinstance(status, dict) else {}
    record = project_workflow({**workflow, "status": kept})
    if record is None:
        message = (
            f"workflow {text(workflow, 'metadata', 'name')!r} has no sweep: no template of it has {labels.LABEL_SWEEP}"
        )
        raise SpeconError(message)
    return record


def read_workflow(access: Access, name: str) -> Json:
    """Return the workflow of that name.

    Raises:
        ApiError: There is none, or it may not be read.
    """
    return access.api.get(WORKFLOWS.path(access.namespace, name))


def read_workflows(access: Access) -> list[WorkflowRecord]:
    """Return the workflows of the namespace that have a sweep, the newest first.

    Raises:
        ApiError: They may not be read.
    """
    pages = access.api.pages(WORKFLOWS.path(access.namespace), {}, _PAGE)
    found = [workflow for page in pages for workflow in mappings(page, "items")]
    records = [record for workflow in found if (record := project_workflow(dict(workflow))) is not None]
    return sorted(records, key=lambda record: record.created_at, reverse=True)


def read_pods(access: Access, workflow: str | None) -> Sequence[PodRecord]:
    """Return the pods of a workflow's trials, or of those of every workflow in the namespace.

    Raises:
        ApiError: They may not be read.
    """
    of_workflow = LABEL_WORKFLOW if workflow is None else f"{LABEL_WORKFLOW}={workflow}"
    chosen = f"{of_workflow},{labels.LABEL_SWEEP},{labels.LABEL_TRIAL}"
    pages = access.api.pages(PODS.path(access.namespace), {"labelSelector": chosen}, _PAGE)
    pods = (project_pod(dict(pod)) for page in pages for pod in mappings(page, "items"))
    return [pod for pod in pods if pod is not None]


def find_workflow(access: Access, wanted: str | None) -> Json:
    """Return the workflow that ``wanted`` names: by its name, by that of a sweep in it, or the newest for None.

    Raises:
        SpeconError: There is none; the message lists those there are.
        ApiError: They may not be read.
    """
    known = read_workflows(access)
    fitting = [record for record in known if wanted is None or wanted == record.name or wanted in _sweeps(record)]
    if fitting:
        return read_workflow(access, fitting[0].name)
    if wanted is not None and (old := _by_name(access, wanted)) is not None:
        return old
    names = ", ".join(record.name for record in known[:_MOST_NAMED]) or "none"
    what = "no workflow with a sweep" if wanted is None else f"no workflow and no sweep {wanted!r}"
    message = f"{what} in namespace {access.namespace!r} (there: {names}). Give another with --namespace."
    raise SpeconError(message)


def _by_name(access: Access, name: str) -> Json | None:
    found = access.api.pages(WORKFLOWS.path(access.namespace), {"fieldSelector": f"metadata.name={name}"}, 1)
    return next((dict(workflow) for page in found for workflow in mappings(page, "items")), None)


def _sweeps(record: WorkflowRecord) -> set[str]:
    return {sweep.id.partition(".")[2] for sweep in record.sweeps} | {sweep.id for sweep in record.sweeps}
