"""The changes made to pods: patches, evictions, and signals to the trainer. Each is for one very pod.

SIGTERM and SIGKILL reach a trainer by exec. Argo's own ``argoexec`` is in every main container: sent to process 1,
SIGTERM is handed on to the trainer's whole process group. SIGKILL cannot go that way, because the kernel keeps it from
process 1 of a container when it comes from inside, and Argo's emissary reads no more orders after a SIGTERM. So the
trainer is killed by a shell that kills every other process it may. Neither is ever sent where the processes of a
container are not by themselves.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from controllers.core import labels
from controllers.worlds.argo.calls.api import PODS, STRATEGIC, Json, KubeApi
from controllers.worlds.argo.calls.errors import ApiError, ConflictError, RejectedError, UnavailableError
from controllers.worlds.argo.calls.exec_call import run_command
from controllers.worlds.argo.deciding.commands import Annotations
from controllers.worlds.argo.reading.demands import HOSTNAME
from controllers.worlds.argo.reading.nodes import NodeRecord
from controllers.worlds.argo.reading.pods import MAIN, PodRecord, project_pod, whole_milli

_TERMINATE = ("/var/run/argo/argoexec", "kill", "15", "1")
_KILL = f"printf '{labels.MOVED_MESSAGE}' > /dev/termination-log; kill -9 -1"


def check_same_pod(api: KubeApi, pod: PodRecord) -> None:
    """Check that the pod of that name still is this trial's, before a call that cannot be made conditional.

    Raises:
        ConflictError: it is another one by now.
        ApiError: of another kind.
    """
    record = project_pod(api.get(PODS.path(pod.namespace, pod.name)))
    if record is None or record.uid != pod.uid or record.definition != pod.definition:
        message = f"pod {pod.name} is another one by now"
        raise ConflictError(message)


def annotate(api: KubeApi, pod: PodRecord, annotations: Annotations) -> None:
    """Set annotations; None takes one away.

    Raises:
        ApiError: of the kind that fits.
    """
    api.patch(PODS.path(pod.namespace, pod.name), {"metadata": {"uid": pod.uid, "annotations": {**annotations}}})


def open_gate(api: KubeApi, pod: PodRecord, node: NodeRecord | None, annotations: dict[str, str | None]) -> None:
    """Take our gate from ``pod``, and bind it to ``node`` in the same patch where there is one.

    Raises:
        ApiError: of the kind that fits.
    """
    spec: Json = {"schedulingGates": [{"$patch": "delete", "name": labels.GATE_PLACEMENT}]}
    if node is not None:
        # A node selector stands beside whatever affinity the trial's author set, and both must hold.
        spec["nodeSelector"] = {HOSTNAME: node.hostname}
        annotations = {**annotations, labels.ANNOTATION_PLACED_ON: node.name}
        if pod.demands.host:
            annotations[labels.ANNOTATION_OWN_HOST] = "true"
    body = {"metadata": {"uid": pod.uid, "annotations": annotations}, "spec": spec}
    api.patch(PODS.path(pod.namespace, pod.name), body, STRATEGIC)


def resize(api: KubeApi, pods: Sequence[PodRecord], cpu: float, resizes: int) -> None:
    """Ask for ``cpu`` cores for the main containers of running pods of a trial, in place, or of none of them.

    Its workers train at the pace of the slowest. ``resizes`` counts those before.

    Raises:
        ApiError: the API server refused one, and those before it have their old requests again: ``ForbiddenError``
            where the node could never give as much.
    """
    for number, pod in enumerate(pods):
        try:
            if pod.marks.base_cpu is None:
                # Once resized, the pod itself no longer shows what its author asked for.
                base = f"{pod.share.wanted:g}"
                annotate(api, pod, {labels.ANNOTATION_BASE_CPU: base, labels.ANNOTATION_RESIZES: str(resizes)})
            set_request(api, pod, cpu)
        except ApiError:
            for resized in pods[:number]:
                with suppress(ApiError):
                    set_request(api, resized, resized.share.wanted)
            raise


def set_request(api: KubeApi, pod: PodRecord, cpu: float) -> None:
    """Set the CPU request of the main container of a running pod to ``cpu`` cores.

    Raises:
        ApiError: of the kind that fits.
    """
    container = {"name": MAIN, "resources": {"requests": {"cpu": f"{whole_milli(cpu)}m"}}}
    body = {"metadata": {"uid": pod.uid}, "spec": {"containers": [container]}}
    api.patch(PODS.path(pod.namespace, pod.name, "resize"), body, STRATEGIC)


def evict(api: KubeApi, pod: PodRecord, *, waits: bool) -> None:
    """Evict ``pod``: with its own grace period if somebody ``waits`` for its program, else without its kubelet.

    The API server asks no budget about a pod that is pending or on its way out, as those of lost nodes are.

    Raises:
        BudgetError: a PodDisruptionBudget forbids it for now.
        ApiError: of another kind.
    """
    options: Json = {"preconditions": {"uid": pod.uid}, **({} if waits else {"gracePeriodSeconds": 0})}
    metadata = {"name": pod.name, "namespace": pod.namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    api.create(PODS.path(pod.namespace, pod.name, "eviction"), body)


def ask_to_leave(api: KubeApi, pod: PodRecord, *, signals: bool) -> None:
    """Ask the trainer in ``pod`` to save a checkpoint and exit: by SIGTERM, or by an annotation that names its attempt.

    Raises:
        UnavailableError: it is not known whether the request got there.
        ApiError: of another kind.
    """
    if signals:
        execute(api, pod, _TERMINATE)
    else:
        annotate(api, pod, {labels.ANNOTATION_LEAVE: pod.attempt_name})


def kill(api: KubeApi, pod: PodRecord) -> None:
    """Kill the trainer in ``pod``, and mark its end as one for a move.

    Raises:
        UnavailableError: it is not known whether the signal got there, or the image has no shell.
    """
    execute(api, pod, ("/bin/sh", "-c", _KILL))


def execute(api: KubeApi, pod: PodRecord, command: tuple[str, ...]) -> None:
    """Run ``command`` in the pod's main container and wait for it to end.

    Raises:
        RejectedError: the pod shares its processes with others, which a signal would reach.
        NotAllowedNowError: this controller must not act now.
        UnavailableError: it could not be run, took too long, or failed.
    """
    if pod.why_no_signal:
        message = f"no signal is sent in pod {pod.namespace}/{pod.name}: {pod.why_no_signal}"
        raise RejectedError(message)
    run_command(api, PODS.path(pod.namespace, pod.name, "exec"), MAIN, command)


def of_each(pods: Iterable[PodRecord], change: Callable[[PodRecord], None]) -> None:
    """Make a change to every pod.

    Raises:
        ApiError: what went wrong with one; all others were tried, too.
    """
    failure: ApiError | None = None
    for pod in pods:
        try:
            change(pod)
        except ApiError as error:
            failure = error
    if failure is not None:
        raise failure


def of_first(pods: Sequence[PodRecord], change: Callable[[PodRecord], None]) -> None:
    """Make a change to the first pod that takes it.

    Raises:
        ApiError: what went wrong with the last.
    """
    for pod in pods[:-1]:
        try:
            change(pod)
        except UnavailableError:
            continue
        return
    change(pods[-1])
