"""Small records of pods. What a pod says of itself is untrusted."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from controllers.core import labels
from controllers.worlds.argo.api import Json
from controllers.worlds.argo.facts import TrialFacts, facts_of
from controllers.worlds.argo.untrusted import at, count, epoch, mappings, number, quantity, text, whole

MAIN: Final = "main"
"""Name of the container that Argo runs a template's program in."""
LABEL_WORKFLOW: Final = "workflows.argoproj.io/workflow"
HOSTNAME: Final = "kubernetes.io/hostname"
_NODE_NAME = "workflows.argoproj.io/node-name"
_ATTEMPT = re.compile(r"(.*)\((\d{1,6})\)", re.DOTALL)
_DEFAULT_GRACE_S = 30
_OVER = frozenset({"Succeeded", "Failed"})


class MainState(StrEnum):
    """How far the main container has come."""

    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


class ResizeState(StrEnum):
    """What the kubelet says of a wished share."""

    SETTLED = "settled"
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, slots=True)
class Load:
    """What a pod takes of its node by the scheduler's reckoning: cores and bytes."""

    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class OtherPod:
    """A pod on a node that is no trial."""

    uid: str
    node: str
    load: Load


@dataclass(frozen=True, slots=True)
class Marks:
    """Our annotations on a trial's pod; see controllers.core.labels for what each means."""

    move_to: str = ""
    asked_at: float | None = None
    placed_on: str = ""
    moved_from: str = ""
    moves: int = 0
    resizes: int = 0
    base_cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """CPU of the main container in cores: what it asks for, what it has, and what the kubelet says to the wish.

    ``since`` is when the kubelet began to say so, in Unix seconds.
    """

    wanted: float
    has: float
    limit: float | None = None
    state: ResizeState = ResizeState.SETTLED
    since: float | None = None


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod with the labels of a trial. ``facts`` is None where it does not keep the contract: then it is only load.

    ``step`` is Argo's name of the step over all its attempts, ``attempt`` counts from 1. Times are Unix seconds.
    """

    uid: str
    namespace: str
    name: str
    workflow: str
    workflow_uid: str
    step: str
    attempt: int
    facts: TrialFacts | None
    phase: str
    node: str
    created_at: float
    deleted_at: float | None
    main: MainState
    exit_code: int | None
    gated: bool
    unschedulable_since: float | None
    quality: str
    grace_s: int
    share: Share
    memory: float
    load: Load
    marks: Marks

    @property
    def over(self) -> bool:
        """Whether none of its containers will run again."""
        return self.phase in _OVER

    @property
    def holds(self) -> bool:
        """Whether it takes room on a node."""
        return bool(self.node) and not self.over

    @property
    def base_cpu(self) -> float:
        """Cores that its author asked for."""
        return self.share.wanted if self.marks.base_cpu is None else self.marks.base_cpu


def project_other(pod: Json) -> OtherPod | None:
    """Return the record of a pod that takes room on a node, None for one that takes none."""
    node = text(pod, "spec", "nodeName", most=253)
    if not node or text(pod, "status", "phase") in _OVER:
        return None
    return OtherPod(text(pod, "metadata", "uid"), node, load_of(pod))


def project_pod(pod: Json) -> PodRecord | None:
    """Return the record of a pod with the labels of a trial; None where it belongs to no workflow."""
    owner = next((o for o in mappings(pod, "metadata", "ownerReferences") if text(o, "kind") == "Workflow"), None)
    workflow = text(pod, "metadata", "labels", LABEL_WORKFLOW)
    if owner is None or not workflow:
        return None
    main = _named(mappings(pod, "spec", "containers"))
    status = _named(mappings(pod, "status", "containerStatuses"))
    step, attempt = _step(text(pod, "metadata", "annotations", _NODE_NAME))
    unplaced = _condition(pod, "PodScheduled")
    return PodRecord(
        uid=text(pod, "metadata", "uid"),
        namespace=text(pod, "metadata", "namespace"),
        name=text(pod, "metadata", "name"),
        workflow=workflow,
        workflow_uid=text(owner, "uid"),
        step=step,
        attempt=attempt,
        facts=_facts(pod, main),
        phase=text(pod, "status", "phase"),
        node=text(pod, "spec", "nodeName", most=253),
        created_at=epoch(pod, "metadata", "creationTimestamp") or 0.0,
        deleted_at=epoch(pod, "metadata", "deletionTimestamp"),
        main=_main_state(status),
        exit_code=whole(status, "state", "terminated", "exitCode"),
        gated=any(text(gate, "name") == labels.GATE_PLACEMENT for gate in mappings(pod, "spec", "schedulingGates")),
        unschedulable_since=epoch(unplaced, "lastTransitionTime")
        if text(unplaced, "reason") == "Unschedulable"
        else None,
        quality=text(pod, "status", "qosClass"),
        grace_s=_grace(pod),
        share=_share(pod, main, status),
        memory=quantity(main, "resources", "requests", "memory"),
        load=load_of(pod),
        marks=_marks(pod),
    )


def load_of(pod: Json) -> Load:
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
        whole_pod = quantity(pod, "spec", "resources", "requests", resource)
        return (whole_pod or max(running + beside, peak)) + quantity(pod, "spec", "overhead", resource)

    return Load(amount("cpu"), amount("memory"))


def _facts(pod: Json, main: Mapping[str, Any]) -> TrialFacts | None:
    where = f"pod {text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}"
    return facts_of(where, strings(pod, "metadata", "labels"), strings(pod, "metadata", "annotations"), env_of(main))


def env_of(container: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a container that have a plain value."""
    return {text(variable, "name"): text(variable, "value", most=2**16) for variable in mappings(container, "env")}


def strings(value: object, *path: str) -> dict[str, str]:
    """Return the mapping of strings along ``path`` without what is no string or far too long."""
    found = at(value, *path)
    names = found if isinstance(found, Mapping) else {}
    return {name: text(names, name) for name in names if isinstance(name, str) and text(names, name)}


def _named(containers: Iterator[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((container for container in containers if text(container, "name") == MAIN), {})


def _step(node_name: str) -> tuple[str, int]:
    """Split the name of an attempt, such as ``wf[0].a(2)``, from its number; no number where Argo retries nothing."""
    retried = _ATTEMPT.fullmatch(node_name)
    return (retried[1], int(retried[2]) + 1) if retried else (node_name, 1)


def _main_state(status: Mapping[str, Any]) -> MainState:
    if at(status, "state", "running") is not None:
        return MainState.RUNNING
    return MainState.OVER if at(status, "state", "terminated") is not None else MainState.WAITING


def _condition(pod: Json, kind: str) -> Mapping[str, Any]:
    return next((c for c in mappings(pod, "status", "conditions") if text(c, "type") == kind), {})


def _grace(pod: Json) -> int:
    found = whole(pod, "spec", "terminationGracePeriodSeconds")
    return _DEFAULT_GRACE_S if found is None or found < 0 else found


def _share(pod: Json, main: Mapping[str, Any], status: Mapping[str, Any]) -> Share:
    wanted = quantity(main, "resources", "requests", "cpu")
    pending = _condition(pod, "PodResizePending")
    says = text(pending, "reason").lower() if text(pending, "status") == "True" else ""
    return Share(
        wanted=wanted,
        has=quantity(status, "resources", "requests", "cpu") or wanted,
        limit=quantity(main, "resources", "limits", "cpu") or None,
        state=ResizeState(says) if says in set(ResizeState) else ResizeState.SETTLED,
        since=epoch(pending, "lastTransitionTime"),
    )


def _marks(pod: Json) -> Marks:
    notes = strings(pod, "metadata", "annotations")
    return Marks(
        move_to=notes.get(labels.ANNOTATION_MOVE_TO, "")[:253],
        asked_at=number(notes.get(labels.ANNOTATION_MOVE_ASKED_AT, "")),
        placed_on=notes.get(labels.ANNOTATION_PLACED_ON, "")[:253],
        moved_from=notes.get(labels.ANNOTATION_MOVED_FROM, "")[:253],
        moves=count(notes.get(labels.ANNOTATION_MOVES, "")),
        resizes=count(notes.get(labels.ANNOTATION_RESIZES, "")),
        base_cpu=number(notes.get(labels.ANNOTATION_BASE_CPU, "")),
    )
