"""Which fields of a workflow the local world honours, and which it may ignore and why. All others are refused."""

from collections.abc import Mapping
from typing import Any, Final

from controllers.core.devices import GPU, is_device
from controllers.worlds.local.workflow.findings import Findings

HONOURED: Final[Mapping[str, frozenset[str]]] = {
    "workflow": frozenset({"apiVersion", "kind", "metadata", "spec"}),
    "spec": frozenset(
        {"arguments", "entrypoint", "parallelism", "podMetadata", "podSpecPatch", "templates"}
        | {"volumes", "volumeClaimTemplates"}
    ),
    "arguments": frozenset({"parameters"}),
    "parameter": frozenset({"name", "value", "default", "enum"}),
    "argument": frozenset({"name", "value"}),
    "outputs": frozenset({"parameters"}),
    "output": frozenset({"name", "valueFrom"}),
    "valueFrom": frozenset({"path", "parameter", "default"}),
    "template": frozenset(
        {"name", "inputs", "outputs", "container", "script", "steps", "dag", "suspend", "metadata"}
        | {"parallelism", "failFast", "retryStrategy", "podSpecPatch", "volumes", "activeDeadlineSeconds"}
        | {"timeout"}
    ),
    "container": frozenset({"command", "args", "env", "resources", "volumeMounts"}),
    "script": frozenset({"command", "args", "env", "resources", "volumeMounts", "source"}),
    "env": frozenset({"name", "value", "valueFrom"}),
    "resources": frozenset({"requests", "limits"}),
    "requests": frozenset({"cpu", "memory", GPU}),
    "limits": frozenset({"cpu", "memory", GPU}),
    "podMetadata": frozenset({"labels", "annotations"}),
    "suspend": frozenset({"duration"}),
    "dag": frozenset({"tasks", "failFast"}),
    "step": frozenset(
        {"name", "template", "arguments", "when", "withItems", "withParam", "withSequence", "continueOn"}
    ),
    "task": frozenset(
        {"name", "template", "arguments", "when", "withItems", "withParam", "withSequence", "continueOn"}
        | {"dependencies", "depends"}
    ),
    "continueOn": frozenset({"failed", "error"}),
    "withSequence": frozenset({"count", "start", "end"}),
    "retryStrategy": frozenset({"limit", "retryPolicy", "expression", "backoff"}),
    "backoff": frozenset({"duration", "factor", "cap"}),
}

_NO_IMAGES: Final = "programs here run from this machine, not from images"
_NO_API: Final = "there is no cluster here whose API a step could call"
_ONE_USER: Final = "every step runs as the user who started the sweep"
_NO_OBJECTS: Final = "a process that has ended leaves no object to clean up"
_NO_SCHEDULER: Final = "the local world places its own steps"
_NO_POD_NETWORK: Final = "a process uses this machine's own network and names"
_FOR_PEOPLE: Final = "it describes, and changes nothing that runs"

SELECTORS: Final = ("nodeSelector", "affinity")
"""Which nodes a pod may go to: left aside here, and said so."""
_POD: Final[Mapping[str, str]] = {
    **dict.fromkeys(SELECTORS, "nodes here are slices of one machine, and carry no labels"),
    "serviceAccountName": _NO_API,
    "automountServiceAccountToken": _NO_API,
    "executor": _NO_API,
    "securityContext": _ONE_USER,
    "tolerations": "they let a pod onto tainted nodes; nodes here have no taints",
    "schedulerName": _NO_SCHEDULER,
    "priorityClassName": _NO_SCHEDULER,
    "hostAliases": _NO_POD_NETWORK,
    "metrics": "Argo's own metrics are not kept here; the sweep's are in MLflow",
    "archiveLocation": "outputs stay on this machine",
}
_CONTAINER: Final[Mapping[str, str]] = {
    "image": _NO_IMAGES,
    "imagePullPolicy": _NO_IMAGES,
    "name": _FOR_PEOPLE,
    "ports": _NO_POD_NETWORK,
    "securityContext": _ONE_USER,
    "terminationMessagePath": "a step's output is kept whole",
    "terminationMessagePolicy": "a step's output is kept whole",
}

IGNORED: Final[Mapping[str, Mapping[str, str]]] = {
    "workflow": {"status": "it is what a cluster reported of an earlier run"},
    "spec": {
        **_POD,
        "podGC": _NO_OBJECTS,
        "ttlStrategy": _NO_OBJECTS,
        "volumeClaimGC": _NO_OBJECTS,
        "artifactGC": _NO_OBJECTS,
        "podDisruptionBudget": "nothing drains this machine",
        "podPriorityClassName": _NO_SCHEDULER,
        "priority": "it orders workflows that wait for one Argo controller",
        "archiveLogs": "every step's output is kept on this machine anyway",
        "imagePullSecrets": _NO_IMAGES,
        "hostNetwork": _NO_POD_NETWORK,
        "dnsPolicy": _NO_POD_NETWORK,
        "dnsConfig": _NO_POD_NETWORK,
        "workflowMetadata": _FOR_PEOPLE,
    },
    "parameter": {"description": _FOR_PEOPLE},
    "output": {"description": _FOR_PEOPLE},
    "template": {**_POD, "annotations": _FOR_PEOPLE},
    "container": _CONTAINER,
    "script": _CONTAINER,
    "requests": {"ephemeral-storage": "this machine's disk is not divided"},
    "limits": {"ephemeral-storage": "this machine's disk is not divided"},
}
"""Fields without meaning on one machine that do no harm when left aside, each with the reason."""

REASONS: Final[Mapping[str, str]] = {
    "claims": "devices behind ResourceClaims are a cluster's: leave resource_claims= out, or use Resources(gpus=1)",
    "templateDefaults": "write these fields into the templates",
    "templateRef": "the local world cannot read templates of other objects",
    "workflowTemplateRef": "the local world cannot read templates of other objects",
    "artifacts": "only parameters are handed on here",
    "workingDir": "it is a folder of the image",
    "envFrom": "the local world cannot read config maps and secrets",
    "sidecars": "a step is one process here",
    "initContainers": "a step is one process here",
    "containerSet": "a step is one process here",
}


_AMOUNTS: Final = frozenset({"requests", "limits"})


def check_fields(findings: Findings, kind: str, node: Mapping[str, Any], path: str) -> None:
    """Note each field of ``node``, a thing of ``kind``, that is neither honoured nor ignorable."""
    known = HONOURED[kind] | IGNORED.get(kind, {}).keys()
    for name, value in node.items():
        if name not in known and value not in (None, [], {}, ""):
            findings.unsupported(f"{path}.{name}" if path else str(name), _reason(kind, str(name), value))


def _reason(kind: str, name: str, value: object) -> str:
    if kind in _AMOUNTS and is_device(name):
        asked = str(value)[:20]
        return f"{asked!r} is asked for, but of devices only {GPU} are given out here: use a cluster or leave it out"
    return REASONS.get(name, "the local world cannot honour this field")
