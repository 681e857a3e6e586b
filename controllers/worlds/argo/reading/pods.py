"""Small records of pods. Whatever a pod says of itself is untrusted."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Final

from controllers.core import labels
from controllers.core.after_attempt import Failure
from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.expressions import ARGOEXEC, ENDING
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import (
    at,
    count,
    device_kinds,
    devices_of,
    epoch,
    mappings,
    quantity,
    strings,
    text,
    whole,
)
from controllers.worlds.argo.reading.definitions import MOST_WORKERS, TrialDefinition, read_definition
from controllers.worlds.argo.reading.demands import ANY_NODE, Demands, demands_of
from controllers.worlds.argo.reading.marks import Marks, read_marks
from controllers.worlds.argo.reading.pod_ends import Leaving, disrupted, failure_of, leaving_of
from controllers.worlds.argo.reading.queueing import Queueing, queueing_of
from controllers.worlds.argo.reading.resource_claims import NO_CLAIMS, PodClaims, claims_of
from controllers.worlds.argo.reading.versions import Version, argo_version
from mlflow_hooks.contract import ENV_LEAVE_FILE, ENV_LINEAGE, ENV_RUN, ENV_RUN_CONTEXT

MAIN: Final = "main"
"""Name of the container that Argo runs a template's program in."""
LABEL_WORKFLOW: Final = "workflows.argoproj.io/workflow"
_NODE_NAME = "workflows.argoproj.io/node-name"
_NODE_ID = "workflows.argoproj.io/node-id"
_ARGO = "argoproj.io/"
_ATTEMPT = re.compile(r".*\((\d{1,6})\)", re.DOTALL)
_WORKER = re.compile(rf".*\((\d{{1,6}})\)\[0\]\.{labels.STEP_WORKER}\((\d{{1,2}}):\d{{1,2}}\)", re.DOTALL)
_DEFAULT_GRACE_S = 30
_MOST_TOKEN = 128
_MOST_SAID = 256
_LEAVE_FIELD = f"metadata.annotations['{labels.ANNOTATION_LEAVE}']"
_OVER = frozenset({"Succeeded", "Failed"})


class MainState(StrEnum):
    """How far the main container has come."""

    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


class ResizeState(StrEnum):
    """How the kubelet answers a request for another share."""

    GRANTED = "granted"
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, slots=True)
class Resources:
    """Cores, bytes and devices that pods request of a node, as the scheduler counts them."""

    cpu: float
    memory: float
    devices: Devices = NO_DEVICES

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(self.cpu + other.cpu, self.memory + other.memory, self.devices + other.devices)

    def __sub__(self, other: "Resources") -> "Resources":
        return self + other * -1

    def __mul__(self, times: int) -> "Resources":
        return Resources(self.cpu * times, self.memory * times, self.devices * times)

    def positive(self) -> "Resources":
        """Return this with nothing below zero."""
        return Resources(max(0.0, self.cpu), max(0.0, self.memory), self.devices.positive())


NO_RESOURCES: Final = Resources(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class OtherPod:
    """A pod on a node that is no trial; ``daemon`` tells that each node of its kind has one like it."""

    uid: str
    node: str
    requests: Resources
    daemon: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """CPU of the main container in cores: what it requests, what it has, and how the kubelet answers the request.

    ``since`` is when the kubelet first answered so, in Unix seconds, and ``said`` is in its words why not.
    """

    wanted: float
    has: float
    limit: float | None = None
    state: ResizeState = ResizeState.GRANTED
    since: float | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod with the labels of a trial. ``attempt`` counts from 1, times are Unix seconds.

    ``definition`` is None where its author's labels and annotations are amiss: then the pod only takes room. ``ends``
    tells that it was made only to end the step of a trial that was stopped. ``node_id`` is how Argo's record of the
    workflow calls it. Anybody may write all this: ``WorkflowRecord.made`` tells whether Argo did. ``why_no_signal``
    says why none is sent to its trainer, None where one may be; ``sees_asks`` tells that its program can see the
    annotation by which it is asked to leave. ``takes_run`` tells that its program is told a run in
    MLflow by the annotation for that, ``takes_lineage`` from whose checkpoint it goes on, and ``makes_runs`` that the
    runs that it makes itself are found. ``demands`` are its
    author's on its node. The main container has run since ``runs_since``, None where it does not; ``failure``
    is how it failed, and ``leaving`` how it left so that its trial goes on, None where it did not. ``disrupted`` tells
    that Kubernetes makes it leave.

    ``argo`` is the version of the Argo that made it, None where its containers do not tell. ``queueing`` is how Kueue
    holds it, None where it does not. ``devices_unread`` says why it is not known which devices its ``resource_claims``
    ask for, ``devices_pending`` tells that these are yet to be made; else ``requests`` have them.

    ``rank`` is the worker's in its attempt. ``gang`` tells that this may have others: ``size`` is how many workers it
    has by now, ``token`` what tells it from all other attempts.
    """

    uid: str
    namespace: str
    name: str
    workflow: str
    workflow_uid: str
    attempt: int
    definition: TrialDefinition | None
    phase: str
    node: str
    created_at: float
    deleted_at: float | None
    main: MainState
    gated: bool
    unschedulable_since: float | None
    quality: str
    grace_s: int
    share: Share
    memory: float
    requests: Resources
    marks: Marks
    ends: bool = False
    node_id: str = ""
    why_no_signal: str | None = None
    sees_asks: bool = False
    takes_run: bool = False
    takes_lineage: bool = False
    makes_runs: bool = False
    demands: Demands = ANY_NODE
    runs_since: float | None = None
    failure: Failure | None = None
    leaving: Leaving | None = None
    disrupted: bool = False
    argo: Version | None = None
    queueing: Queueing | None = None
    resource_claims: PodClaims = NO_CLAIMS
    devices_unread: str = ""
    devices_pending: bool = False
    rank: int = 0
    gang: bool = False
    size: int = 1
    token: str = ""

    @property
    def weight(self) -> int:
        """How much room its record takes, in kilobytes, roughly."""
        own = 0 if self.definition is None else self.definition.length
        return 1 + (own + self.demands.length + self.resource_claims.length) // 1024

    def is_told_a_run(self, *, goes_on: bool) -> bool:
        """Return whether its program shall be told a run to log to: if it makes its own, only where it ``goes_on``."""
        return self.takes_run and (goes_on or not self.makes_runs)

    @property
    def attempt_name(self) -> str:
        """What tells its attempt from all others, as its program knows it: the same for all workers of a gang."""
        return self.token if self.gang else self.uid

    @property
    def over(self) -> bool:
        """Whether none of its containers will run again."""
        return self.phase in _OVER

    @property
    def on_node(self) -> bool:
        """Whether it takes room on a node."""
        return bool(self.node) and not self.over

    @property
    def claims(self) -> bool:
        """Whether it waits for the scheduler to bring it to the node that, as it says, was chosen for it."""
        return bool(self.marks.placed_on) and not (self.gated or self.on_node or self.over)

    @property
    def base_cpu(self) -> float:
        """Cores that its author asked for."""
        return self.share.wanted if self.marks.base_cpu is None else self.marks.base_cpu


def whole_milli(cpu: float) -> int:
    """Return whole thousandths of a core, rounded down, so that shares which fill a node still fit."""
    return math.floor(round(cpu * 1000, 6))


def project_other(pod: Json) -> OtherPod | None:
    """Return the record of a pod that takes room on a node, None for one that takes none."""
    node = text(pod, "spec", "nodeName", most=253)
    if not node or text(pod, "status", "phase") in _OVER:
        return None
    daemon = any(
        text(owner, "kind") == "DaemonSet" and at(owner, "controller") is True
        for owner in mappings(pod, "metadata", "ownerReferences")
    )
    return OtherPod(text(pod, "metadata", "uid"), node, requests_of(pod), daemon)


def project_pod(pod: Json) -> PodRecord | None:
    """Return the record of a pod with the labels of a trial; None where it belongs to no workflow."""
    workflow = text(pod, "metadata", "labels", LABEL_WORKFLOW)
    owner = next(
        (reference for reference in mappings(pod, "metadata", "ownerReferences") if _is_workflow(reference)), None
    )
    if owner is None or not workflow or text(owner, "name") != workflow:
        return None
    where = f"pod {text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}"
    pod_labels, annotations = strings(pod, "metadata", "labels"), strings(pod, "metadata", "annotations")
    main = _named(mappings(pod, "spec", "containers"))
    status = _named(mappings(pod, "status", "containerStatuses"))
    # Argo names an attempt such as wf[0].a(2) by step and number; there is no number where it retries nothing.
    step = text(pod, "metadata", "annotations", _NODE_NAME)
    worker = _WORKER.fullmatch(step)
    retried = worker or _ATTEMPT.fullmatch(step)
    placed = _condition(pod, "PodScheduled")
    waits_since = epoch(placed, "lastTransitionTime") if text(placed, "reason") == "Unschedulable" else None
    grace = whole(pod, "spec", "terminationGracePeriodSeconds")
    return PodRecord(
        uid=text(pod, "metadata", "uid"),
        namespace=text(pod, "metadata", "namespace"),
        name=text(pod, "metadata", "name"),
        workflow=workflow,
        workflow_uid=text(owner, "uid"),
        node_id=text(pod, "metadata", "annotations", _NODE_ID, most=512),
        attempt=int(retried[1]) + 1 if retried else 1,
        definition=read_definition(where, pod_labels, annotations, env_of(main)),
        phase=text(pod, "status", "phase"),
        node=text(pod, "spec", "nodeName", most=253),
        created_at=epoch(pod, "metadata", "creationTimestamp") or 0.0,
        deleted_at=epoch(pod, "metadata", "deletionTimestamp"),
        main=_main_state(status),
        gated=any(text(gate, "name") == labels.GATE_PLACEMENT for gate in mappings(pod, "spec", "schedulingGates")),
        unschedulable_since=waits_since,
        quality=text(pod, "status", "qosClass"),
        grace_s=_DEFAULT_GRACE_S if grace is None or grace < 0 else grace,
        share=_share(pod, main, status),
        memory=quantity(main, "resources", "requests", "memory"),
        requests=requests_of(pod),
        marks=read_marks(annotations, of_a_gang=worker is not None),
        ends=_command(main)[-2:] == [ARGOEXEC, ENDING],
        why_no_signal=_why_no_signal(pod),
        sees_asks=_sees_asks(pod, main),
        takes_run=_is_told(main, ENV_RUN, labels.ANNOTATION_RUN),
        takes_lineage=_is_told(main, ENV_LINEAGE, labels.ANNOTATION_LINEAGE),
        makes_runs=any(text(variable, "name") == ENV_RUN_CONTEXT for variable in mappings(main, "env")),
        runs_since=epoch(status, "state", "running", "startedAt"),
        failure=failure_of(status),
        leaving=leaving_of(pod, status),
        disrupted=disrupted(pod),
        argo=argo_version(pod),
        queueing=queueing_of(pod, pod_labels, annotations),
        resource_claims=claims_of(pod),
        demands=demands_of(
            pod,
            bound=labels.ANNOTATION_PLACED_ON in annotations and labels.ANNOTATION_OWN_HOST not in annotations,
        ),
        rank=0 if worker is None else min(int(worker[2]), MOST_WORKERS - 1),
        gang=worker is not None,
        size=_size(annotations) if worker is not None else 1,
        token=annotations.get(labels.ANNOTATION_ATTEMPT, "")[:_MOST_TOKEN],
    )


def _size(annotations: Mapping[str, str]) -> int:
    return min(max(1, count(annotations.get(labels.ANNOTATION_WORLD_SIZE, ""))), MOST_WORKERS)


def _is_workflow(owner: Mapping[str, Any]) -> bool:
    """Return whether an owner is a workflow that controls the pod, as Argo makes it."""
    is_argos = text(owner, "kind") == "Workflow" and text(owner, "apiVersion").startswith(_ARGO)
    return is_argos and at(owner, "controller") is True


def requests_of(pod: Json) -> Resources:
    """Return what the scheduler counts: requests of containers and sidecars, the greatest init container, overhead.

    A container that is being resized counts with the greater of what it wants and what it has.
    """
    having = {text(s, "name"): at(s, "resources", "requests") for s in mappings(pod, "status", "containerStatuses")}

    def amount(resource: str) -> float:
        running = sum(
            max(quantity(c, "resources", "requests", resource), quantity(having.get(text(c, "name")), resource))
            for c in mappings(pod, "spec", "containers")
        )
        beside = peak = 0.0
        for container in mappings(pod, "spec", "initContainers"):
            wanted = quantity(container, "resources", "requests", resource)
            if text(container, "restartPolicy") == "Always":
                beside += wanted
                peak = max(peak, beside)
            else:
                peak = max(peak, beside + wanted)
        # A request of the pod as a whole stands in place of those of its containers.
        whole_pod = quantity(pod, "spec", "resources", "requests", resource)
        return (whole_pod or max(running + beside, peak)) + quantity(pod, "spec", "overhead", resource)

    containers = (*mappings(pod, "spec", "containers"), *mappings(pod, "spec", "initContainers"))
    kinds = {kind for container in containers for kind in device_kinds(container, "resources", "requests")}
    return Resources(amount("cpu"), amount("memory"), devices_of(kinds, amount))


def env_of(container: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a container that have a plain value."""
    return {text(variable, "name"): text(variable, "value", most=2**16) for variable in mappings(container, "env")}


def _is_told(container: Mapping[str, Any], name: str, annotation: str) -> bool:
    """Return whether the container's variable ``name`` holds an annotation of its pod."""
    path = f"metadata.annotations['{annotation}']"
    return any(
        text(variable, "name") == name and text(variable, "valueFrom", "fieldRef", "fieldPath", most=512) == path
        for variable in mappings(container, "env")
    )


def _named(containers: Iterator[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((container for container in containers if text(container, "name") == MAIN), {})


def _command(main: Mapping[str, Any]) -> list[str]:
    words = (at(main, part) for part in ("command", "args"))
    return [str(word) for listed in words if isinstance(listed, list) for word in listed]


def _why_no_signal(pod: Json) -> str | None:
    """Return why a signal to a pod's trainer would reach others, too; None where it has its processes to itself."""
    if at(pod, "spec", "hostPID") is True:
        return "hostPID is set: its processes are those of its node"
    if at(pod, "spec", "shareProcessNamespace") is True:
        return "shareProcessNamespace is set: its processes are those of all its containers"
    return None


def _sees_asks(pod: Json, main: Mapping[str, Any]) -> bool:
    """Return whether a volume shows the annotation that asks to leave in the file where the program looks for it."""
    file = PurePosixPath(env_of(main).get(ENV_LEAVE_FILE, ""))
    mounts = (m for m in mappings(main, "volumeMounts") if text(m, "mountPath") == str(file.parent))
    name = next((text(mount, "name") for mount in mounts if not text(mount, "subPath")), "")
    volume = next((v for v in mappings(pod, "spec", "volumes") if name and text(v, "name") == name), {})
    return any(
        text(item, "path") == file.name and text(item, "fieldRef", "fieldPath") == _LEAVE_FIELD
        for item in mappings(volume, "downwardAPI", "items")
    )


def _main_state(status: Mapping[str, Any]) -> MainState:
    if at(status, "state", "running") is not None:
        return MainState.RUNNING
    return MainState.OVER if at(status, "state", "terminated") is not None else MainState.WAITING


def _condition(pod: Json, kind: str) -> Mapping[str, Any]:
    return next((c for c in mappings(pod, "status", "conditions") if text(c, "type") == kind), {})


def _share(pod: Json, main: Mapping[str, Any], status: Mapping[str, Any]) -> Share:
    """Return the share as spec, status and conditions have it: no kubelet from 1.33 on writes ``status.resize``."""
    wanted = quantity(main, "resources", "requests", "cpu")
    pending, state = _condition(pod, "PodResizePending"), ResizeState.GRANTED
    if text(pending, "status") == "True" and (says := text(pending, "reason").lower()) in set(ResizeState):
        state = ResizeState(says)
    elif text(failing := _condition(pod, "PodResizeInProgress"), "reason") == "Error":
        # It was granted, and the container's runtime does not carry it out; the kubelet tries again.
        pending, state = failing, ResizeState.DEFERRED
    return Share(
        wanted=wanted,
        has=quantity(status, "resources", "requests", "cpu") or wanted,
        limit=quantity(main, "resources", "limits", "cpu") or None,
        state=state,
        since=epoch(pending, "lastTransitionTime"),
        said="" if state is ResizeState.GRANTED else text(pending, "message")[:_MOST_SAID],
    )
