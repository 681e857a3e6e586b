"""Read a cluster: its workflows with sweeps, their pods, the claims of their checkpoints, where trials first ran."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubernetes import config
from kubernetes.config.config_exception import ConfigException

from controllers.core import labels
from controllers.core.devices import Devices
from controllers.core.errors import SpeconError
from controllers.worlds.argo.calls.api import NODES, PODS, WORKFLOWS, Json, KubeApi, Resource
from controllers.worlds.argo.calls.errors import ForbiddenError, NotFoundError
from controllers.worlds.argo.calls.untrusted import at, mappings, text
from controllers.worlds.argo.reading.nodes import NodeRecord, project_node
from controllers.worlds.argo.reading.pods import LABEL_WORKFLOW, PodRecord, project_pod
from controllers.worlds.argo.reading.workflows import WorkflowRecord, project_workflow, record_of
from hera_specon.gang_request import GangRequest

_OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_PAGE: Final = 200
_MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class Access:
    """An API server, and the namespace to work in there."""

    api: KubeApi
    namespace: str


def open_cluster(kubeconfig: str | None, context: str | None, namespace: str | None) -> Access:
    """Return access as kubectl would get it: by the file given, else KUBECONFIG, else the pod's own account.

    Args:
        kubeconfig: A file; None for the usual one.
        context: A context of that file; None for the current one.
        namespace: None for the context's own, else ``default``.

    Raises:
        SpeconError: There is no usable configuration.
    """
    files = kubeconfig or os.environ.get("KUBECONFIG") or None
    api = KubeApi.load(files, context)
    if not namespace and files is None and context is None and _OWN_NAMESPACE.exists():
        namespace = _OWN_NAMESPACE.read_text(encoding="utf-8").strip()
    elif not namespace:
        try:
            contexts, active = config.list_kube_config_contexts(files)
        except (ConfigException, OSError):
            contexts, active = [], None
        chosen = next((known for known in contexts if known["name"] == context), None) if context else active
        namespace = str(((chosen or {}).get("context") or {}).get("namespace") or "")
    return Access(api, namespace or "default")


def workflow_record(workflow: Json) -> WorkflowRecord:
    """Return the record of a workflow, however long ago it ended.

    Raises:
        SpeconError: It has no sweep.
    """
    record = record_of(workflow)
    if record is None:
        message = (
            f"workflow {text(workflow, 'metadata', 'name')!r} has no sweep: no template of it has {labels.LABEL_SWEEP}"
        )
        raise SpeconError(message)
    return record


def read_workflows(access: Access, *, everywhere: bool = False) -> list[WorkflowRecord]:
    """Return the workflows that have a sweep, the newest first: of the namespace, or ``everywhere``.

    Raises:
        ApiError: They may not be read.
    """
    pages = access.api.pages(WORKFLOWS.path(None if everywhere else access.namespace), {}, _PAGE)
    workflows = [workflow for page in pages for workflow in mappings(page, "items")]
    records = [record for workflow in workflows if (record := project_workflow(dict(workflow))) is not None]
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
    for record in known:
        sweeps = {name for sweep in record.sweeps for name in (sweep.id, sweep.id.partition(".")[2])}
        if wanted in {None, record.name, *sweeps}:
            return access.api.get(WORKFLOWS.path(access.namespace, record.name))
    if wanted is not None:
        # One that ended long ago is not among those known. A list of one, since a get would raise where there is none.
        pages = access.api.pages(WORKFLOWS.path(access.namespace), {"fieldSelector": f"metadata.name={wanted}"}, 1)
        for workflow in (item for page in pages for item in mappings(page, "items")):
            return dict(workflow)
    names = ", ".join(record.name for record in known[:_MOST_NAMED]) or "none"
    what = "no workflow with a sweep" if wanted is None else f"no workflow and no sweep {wanted!r}"
    message = f"{what} in namespace {access.namespace!r} (there: {names}). Give another with --namespace."
    raise SpeconError(message)


CLAIMS = Resource("api/v1", "persistentvolumeclaims")
_SHARED = ("ReadWriteMany",)


def claim_warnings(access: Access, claims: set[str]) -> Iterator[str]:
    """Yield what to know of the claims before trusting checkpoints to them; nothing where they may not be read.

    Raises:
        SpeconError: A claim is not there.
    """
    for name in sorted(claims):
        try:
            claim = access.api.get(CLAIMS.path(access.namespace, name))
        except ForbiddenError:
            continue
        except NotFoundError as error:
            message = (
                f"there is no PersistentVolumeClaim {name!r} in namespace {access.namespace!r}, on which the trials "
                "keep their checkpoints; create it (ReadWriteMany), or name another with Sweep(state_claim=...)"
            )
            raise SpeconError(message) from error
        modes = at(claim, "spec", "accessModes")
        if isinstance(modes, list) and not set(_SHARED) & {str(mode) for mode in modes}:
            yield (
                f"PersistentVolumeClaim {name!r} is {', '.join(map(str, modes))}: one node at a time can mount it, "
                "so a trial that moves to another node waits until no other uses it"
            )


def device_warnings(access: Access, asked: Mapping[str, Devices]) -> Iterator[str]:
    """Yield which sweeps ask for more devices per trial than any node has; nothing where nodes may not be listed.

    No error: a cluster may add a node once a pod waits for one.

    Args:
        access: The cluster.
        asked: Devices of a trial, by the name of its sweep.
    """
    nodes = _nodes(access) if any(asked.values()) else None
    if nodes is None:
        return
    for sweep, devices in asked.items():
        if any(devices.within(node.devices) for node in nodes):
            continue
        most = {kind: max((node.devices.count(kind) for node in nodes), default=0) for kind in sorted(devices.kinds())}
        there = ", ".join(f"{count} {kind}" for kind, count in most.items())
        yield f"each trial of {sweep} asks for {devices}, but no node has as much (at most {there}): they wait"


def gang_warnings(access: Access, asked: Mapping[str, GangRequest]) -> Iterator[str]:
    """Yield which sweeps need more workers at once than all nodes hold; nothing where nodes may not be listed.

    No error, as for devices.

    Args:
        access: The cluster.
        asked: What the least number of workers asks for, by the name of the sweep.
    """
    nodes = _nodes(access) if asked else None
    if nodes is None:
        return
    for sweep, gang in asked.items():
        room = sum(gang.held_by(node.cpu, node.memory) for node in nodes)
        if room < gang.workers:
            yield (
                f"each trial of {sweep} needs {gang.workers} workers of {gang.cpu:g} cores at once, but all nodes "
                f"together hold {room}: they wait"
            )


def _nodes(access: Access) -> list[NodeRecord] | None:
    """Return the nodes, None where they may not be listed."""
    try:
        items = [item for page in access.api.pages(NODES.path(), {}, _PAGE) for item in mappings(page, "items")]
    except ForbiddenError:
        return None
    return [node for item in items if (node := project_node(dict(item))) is not None]


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
    node_of = {step.definition.name: step.attempts[0].node for step in steps if step.attempts and step.attempts[0].node}
    if not node_of:
        why = f": the nodes of its record {record.unread}" if record.unread else ""
        message = (
            f"workflow {record.name!r} has no trial of {', '.join(sweeps)} that ran, as far as Argo still knows{why}"
        )
        raise SpeconError(message)
    return node_of
