"""The changes made to pods. Each holds only for the very pod that was looked at."""

import math

from controllers.core import labels
from controllers.worlds.argo.api import PODS, STRATEGIC, ConflictError, Json, KubeApi
from controllers.worlds.argo.nodes import NodeRecord
from controllers.worlds.argo.pods import HOSTNAME, MAIN, PodRecord, project_pod


def same_pod(api: KubeApi, pod: PodRecord) -> None:
    """Check that the pod of that name still is this trial's, before a call that can't be made conditional.

    Raises:
        ConflictError: it is another one by now.
        ApiError: of another kind.
    """
    found = project_pod(api.get(PODS.path(pod.namespace, pod.name)))
    if found is None or found.uid != pod.uid or found.facts != pod.facts:
        message = f"pod {pod.name} is another one by now"
        raise ConflictError(message)


def annotate(api: KubeApi, pod: PodRecord, notes: dict[str, str | None]) -> None:
    """Set annotations; None takes one away.

    Raises:
        ApiError: of the kind that fits.
    """
    api.patch(PODS.path(pod.namespace, pod.name), {"metadata": {"uid": pod.uid, "annotations": notes}})


def open_gate(api: KubeApi, pod: PodRecord, node: NodeRecord | None, notes: dict[str, str | None]) -> None:
    """Take our gate from ``pod``, and bind it to ``node`` in the same patch where there is one.

    A node selector is beside whatever affinity the trial's author set, and both must hold.

    Raises:
        ApiError: of the kind that fits.
    """
    spec: Json = {"schedulingGates": [{"$patch": "delete", "name": labels.GATE_PLACEMENT}]}
    if node is not None:
        spec["nodeSelector"] = {HOSTNAME: node.hostname}
        notes = {**notes, labels.ANNOTATION_PLACED_ON: node.name}
    body = {"metadata": {"uid": pod.uid, "annotations": notes}, "spec": spec}
    api.patch(PODS.path(pod.namespace, pod.name), body, STRATEGIC)


def resize(api: KubeApi, pod: PodRecord, cpu: float) -> None:
    """Ask for ``cpu`` cores for the main container of a running pod, in place.

    Raises:
        ApiError: of the kind that fits.
    """
    container = {"name": MAIN, "resources": {"requests": {"cpu": quantity_of(cpu)}}}
    body = {"metadata": {"uid": pod.uid}, "spec": {"containers": [container]}}
    api.patch(PODS.path(pod.namespace, pod.name, "resize"), body, STRATEGIC)


def remove(api: KubeApi, pod: PodRecord) -> None:
    """Delete ``pod`` without waiting for its kubelet.

    Raises:
        ApiError: of the kind that fits.
    """
    api.delete(PODS.path(pod.namespace, pod.name), pod.uid, grace_s=0)


def milli(cpu: float) -> int:
    """Return whole thousandths of a core, rounded down so that shares that fill a node still fit."""
    return math.floor(round(cpu * 1000, 6))


def quantity_of(cpu: float) -> str:
    """Return cores as Kubernetes writes them."""
    return f"{milli(cpu)}m"
