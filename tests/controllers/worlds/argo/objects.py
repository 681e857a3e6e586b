"""Kubernetes and Argo objects as an API server shows them."""

import base64
import gzip
import json
from datetime import UTC, datetime
from typing import Any

from controllers.core import labels
from mlflow_hooks.contract import ENV_LEAVE_FILE

Json = dict[str, Any]
NAMESPACE = "sweeps"
WORKFLOW = "sweep-x"
UID = "uid-of-workflow"
BEGAN = 1_700_000_000.0


def stamp(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat().replace("+00:00", "Z")


def trial(name: str = "a") -> str:
    return f"{UID}.sweep.{name}"


def node(name: str, cpu: str = "1", *, ready: bool = True, **spec: Any) -> Json:  # noqa: ANN401
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": f"host-{name}"}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": "1Gi"},
            "conditions": [
                {"type": "Ready", "status": "True" if ready else "Unknown", "lastTransitionTime": stamp(BEGAN)}
            ],
        },
    }


def pod(name: str = "a", attempt: int = 0, **changes: Any) -> Json:  # noqa: ANN401
    """Return a pod of trial ``name``: ``on`` a node, ``gated``, ``state`` of main, ``phase``, ``cpu`` and ``has``."""
    cpu, on = changes.get("cpu", "100m"), changes.get("on", "")
    state = changes.get("state", "running" if on else "")
    made: Json = {
        "metadata": {
            "name": f"{WORKFLOW}-{name}-{attempt}",
            "namespace": NAMESPACE,
            "creationTimestamp": stamp(BEGAN + 1 + attempt),
            "labels": {
                "workflows.argoproj.io/workflow": WORKFLOW,
                labels.LABEL_SWEEP: "sweep",
                labels.LABEL_TRIAL: name,
            },
            "annotations": {
                "workflows.argoproj.io/node-name": f"{WORKFLOW}[0].{name}({attempt})",
                "workflows.argoproj.io/node-id": f"{WORKFLOW}-{name}-{attempt}",
                labels.ANNOTATION_OBJECTIVE: "loss",
                labels.ANNOTATION_DIRECTION: "minimize",
                **changes.get("notes", {}),
            },
            "ownerReferences": [
                {
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "Workflow",
                    "name": WORKFLOW,
                    "uid": UID,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "terminationGracePeriodSeconds": changes.get("grace", 30),
            "containers": [
                {"name": "wait"},
                {
                    "name": "main",
                    "env": [{"name": "SPECON_TRIAL_ID", "value": trial(name)}],
                    "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}},
                },
            ],
        },
        "status": {
            "phase": changes.get("phase", "Running" if state == "running" else "Pending"),
            "qosClass": "Burstable",
        },
    }
    if on:
        made["spec"]["nodeName"] = on
    if changes.get("gated"):
        made["spec"]["schedulingGates"] = [{"name": labels.GATE_PLACEMENT}]
    if state:
        detail = {"exitCode": changes.get("exit_code", 0)} if state == "terminated" else {}
        having = {"requests": {"cpu": changes.get("has", cpu)}}
        made["status"]["containerStatuses"] = [{"name": "main", "state": {state: detail}, "resources": having}]
    if "deleted" in changes:
        made["metadata"]["deletionTimestamp"] = stamp(changes["deleted"])
    if "uid" in changes:
        made["metadata"]["uid"] = changes["uid"]
    if changes.get("sees_asks"):
        show_asks(made)
    made["status"]["conditions"] = list(changes.get("conditions", []))
    return made


def show_asks(made: Json) -> None:
    """Let the program of a pod see the annotation by which it is asked to leave, as the manifests of sweeps do."""
    field = {"fieldPath": f"metadata.annotations['{labels.ANNOTATION_LEAVE}']"}
    made["spec"]["volumes"] = [{"name": "asks", "downwardAPI": {"items": [{"path": "leave", "fieldRef": field}]}}]
    main = next(one for one in made["spec"]["containers"] if one["name"] == "main")
    main["env"].append({"name": ENV_LEAVE_FILE, "value": "/asks/leave"})
    main["volumeMounts"] = [{"name": "asks", "mountPath": "/asks", "readOnly": True}]


def over(exit_code: int, name: str = "a", attempt: int = 0, **changes: Any) -> Json:  # noqa: ANN401
    phase = "Failed" if exit_code else "Succeeded"
    return pod(name, attempt, state="terminated", exit_code=exit_code, phase=phase, **changes)


def template(name: str = "a", policy: str = "") -> Json:
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
    return {
        "name": name,
        "metadata": {
            "labels": {labels.LABEL_SWEEP: "sweep", labels.LABEL_TRIAL: name},
            "annotations": notes | ({labels.ANNOTATION_POLICY: policy} if policy else {}),
        },
        "container": {
            "env": [{"name": "SPECON_TRIAL_ID", "value": "{{workflow.uid}}.sweep." + name}],
            "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}},
        },
    }


def steps(name: str = "a", phase: str = "Running", *attempts: tuple[str, str | None]) -> dict[str, Json]:
    """Return Argo's nodes of a step: ``attempts`` are (node, exit code)."""
    key = f"{WORKFLOW}-{name}"
    children = {f"{key}-{n}": (host, code) for n, (host, code) in enumerate(attempts)}
    parent: Json = {
        "id": key,
        "name": f"{WORKFLOW}[0].{name}",
        "type": "Retry",
        "templateName": name,
        "phase": phase,
        "startedAt": stamp(BEGAN + 1),
        "children": list(children),
    }
    if phase in {"Succeeded", "Failed", "Error"}:
        parent["finishedAt"] = stamp(BEGAN + 90)
    tries = {
        child: {
            "id": child,
            "name": f"{WORKFLOW}[0].{name}({n})",
            "type": "Pod",
            "templateName": name,
            "hostNodeName": host,
            "outputs": {"exitCode": code} if code is not None else {},
        }
        for n, (child, (host, code)) in enumerate(children.items())
    }
    return {key: parent, **tries}


def workflow(
    nodes: dict[str, Json] | None = None,
    phase: str = "Running",
    *,
    packed: bool = False,
    offloaded: bool = False,
    **more: Any,  # noqa: ANN401
) -> Json:
    status: Json = {"phase": phase}
    if offloaded:
        status["offloadNodeStatusVersion"] = "fnv:1234567"
    elif packed:
        status["compressedNodes"] = base64.b64encode(gzip.compress(json.dumps(nodes).encode())).decode()
    elif nodes is not None:
        status["nodes"] = nodes
    return {
        "metadata": {
            "name": WORKFLOW,
            "namespace": NAMESPACE,
            "uid": UID,
            "creationTimestamp": stamp(BEGAN),
            "annotations": {labels.ANNOTATION_ADOPTED: UID},
        },
        "spec": {"templates": [{"name": "main", "steps": []}, *more.get("templates", [template("a"), template("b")])]},
        "status": status,
    }
