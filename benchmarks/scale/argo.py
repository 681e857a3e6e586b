"""What the workflow-controller makes of a workflow: the nodes of its status, and a pod for each attempt of a trial.

The shapes are those of Argo 4.0.7 (createWorkflowPod, NodeStatus), so that what a controller reads has its real size.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks.scale.manifest import SWEEP, Json, SweepManifest, TrialFacts, filled_in, placeholders, pod_patch
from benchmarks.scale.size import NAMESPACE

_EXECUTOR: Final = "quay.io/argoproj/argoexec:v4.0.7"
_MOST_STATUS: Final = 1024 * 1024
"""Bytes of a workflow above which Argo packs its nodes."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt of a trial, as Argo counts them: from 0. ``uid`` is the workflow's."""

    sweep: SweepManifest
    uid: str
    trial: TrialFacts
    number: int = 0
    node: str = ""

    @property
    def step(self) -> str:
        """Argo's name of the trial's step over all attempts."""
        index = int(self.trial.number[1:])
        item = ",".join(f"{name}:{value}" for name, value in sorted(self.trial.inputs.items()))
        return f"{self.sweep.name}[0].trial({index}:{item})"

    @property
    def name(self) -> str:
        """Argo's name of the attempt."""
        return f"{self.step}({self.number})"

    @property
    def pod_name(self) -> str:
        """Name of its pod."""
        return f"{self.sweep.name}-{self.sweep.template['name']}-{_hash(self.name)}"

    def next(self) -> "Attempt":
        """Return the attempt after it, not yet on a node."""
        return replace(self, number=self.number + 1, node="")


def node_id(workflow: str, name: str) -> str:
    """Return Argo's id of a node of a workflow's status."""
    return workflow if name == workflow else f"{workflow}-{_hash(name)}"


def _hash(text: str) -> int:
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def pod_of(attempt: Attempt) -> Json:
    """Return the attempt's pod; a later one than the first is gated."""
    template = filled_in(attempt.sweep.template, placeholders(attempt.trial, attempt.uid))
    owner = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": attempt.sweep.name,
        "uid": attempt.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    marks = {"workflows.argoproj.io/workflow": attempt.sweep.name, "workflows.argoproj.io/completed": "false"}
    notes = {
        "workflows.argoproj.io/node-name": attempt.name,
        "workflows.argoproj.io/node-id": node_id(attempt.sweep.name, attempt.name),
        "kubectl.kubernetes.io/default-container": "main",
    }
    metadata = template["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": attempt.pod_name,
            "namespace": NAMESPACE,
            "labels": {**marks, **metadata["labels"]},
            "annotations": {**notes, **metadata["annotations"]},
            "ownerReferences": [owner],
        },
        "spec": _pod_spec(attempt, template),
    }


def _pod_spec(attempt: Attempt, template: Json) -> Json:
    patch = pod_patch(attempt.sweep.template, gated=attempt.number > 0)
    common = _executor_env(attempt)
    main_env = [*template["container"]["env"], {"name": "ARGO_CONTAINER_NAME", "value": "main"}, *common]
    argo = {"name": "var-run-argo", "mountPath": "/var/run/argo"}
    main = {**template["container"], "name": "main", "env": main_env}
    main["command"] = ["/var/run/argo/argoexec", "emissary", "--", *main["command"]]
    main["volumeMounts"] = [*main["volumeMounts"], argo]
    wait = _helper("wait", ["argoexec", "wait"], template, common, patch["containers"][0]["resources"])
    init = _helper("init", ["argoexec", "init"], template, common, patch["initContainers"][0]["resources"])
    spec = {
        "restartPolicy": "Never",
        "containers": [wait, main],
        "initContainers": [init],
        "volumes": [{"name": "var-run-argo", "emptyDir": {}}, {"name": "tmp-dir-argo", "emptyDir": {}}]
        + template["volumes"],
        "securityContext": template["securityContext"],
        "terminationGracePeriodSeconds": patch["terminationGracePeriodSeconds"],
    }
    gates = {"schedulingGates": patch["schedulingGates"]} if patch["schedulingGates"] else {}
    return {**spec, **gates, **({"nodeName": attempt.node} if attempt.node else {})}


def _helper(name: str, command: list[str], template: Json, common: list[Json], resources: Json) -> Json:
    mounts = [{"name": "tmp-dir-argo", "mountPath": "/tmp", "subPath": "0"}]  # noqa: S108 - inside the pod
    shared = template["container"]["volumeMounts"]
    mounts += [{**mount, "mountPath": f"/mainctrfs{mount['mountPath']}"} for mount in shared]
    shown = json.dumps({**template, "inputs": {}}) if name == "init" else ""
    env = [
        {"name": "ARGO_POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        {"name": "ARGO_POD_UID", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}},
        {"name": "ARGO_CONTAINER_NAME", "value": name},
        *([{"name": "ARGO_TEMPLATE", "value": shown}] if shown else []),
        *common,
    ]
    mounts.append({"name": "var-run-argo", "mountPath": "/var/run/argo"})
    return {
        "name": name,
        "image": _EXECUTOR,
        "command": [*command, "--loglevel", "info", "--log-format", "text", "--gloglevel", "0"],
        "env": env,
        "resources": resources,
        "volumeMounts": mounts,
    }


def _executor_env(attempt: Attempt) -> list[Json]:
    values = {
        "ARGO_WORKFLOW_NAME": attempt.sweep.name,
        "ARGO_WORKFLOW_UID": attempt.uid,
        "ARGO_NODE_ID": node_id(attempt.sweep.name, attempt.name),
        "ARGO_INCLUDE_SCRIPT_OUTPUT": "false",
        "ARGO_DEADLINE": "0001-01-01T00:00:00Z",
        "ARGO_PROGRESS_FILE": "/var/run/argo/progress",
        "ARGO_PROGRESS_PATCH_TICK_DURATION": "1m0s",
        "ARGO_PROGRESS_FILE_TICK_DURATION": "3s",
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def status_nodes(sweep: SweepManifest, attempts: Iterable[Attempt], began: float) -> Json:
    """Return the nodes of a workflow whose trials run, all since ``began`` (Unix seconds)."""
    at = timestamp(began)
    group = f"{sweep.name}[0]"
    nodes: Json = {}
    retries = []
    for attempt in attempts:
        nodes |= attempt_nodes([attempt], at)
        retries.append(node_id(sweep.name, attempt.step))
    shared = {"templateScope": f"local/{sweep.name}", "phase": "Running", "startedAt": at, "progress": "0/1"}
    root = {"id": sweep.name, "name": sweep.name, "displayName": sweep.name, "type": "Steps", "templateName": SWEEP}
    inner = {"id": node_id(sweep.name, group), "name": group, "displayName": "[0]", "type": "StepGroup"}
    nodes[sweep.name] = {**shared, **root, "children": [inner["id"]], "finishedAt": None}
    nodes[inner["id"]] = {**shared, **inner, "boundaryID": sweep.name, "children": retries, "finishedAt": None}
    return nodes


def attempt_nodes(attempts: list[Attempt], at: str) -> Json:
    """Return the nodes of one trial: its step and its attempts. All attempts but the last moved."""
    newest = attempts[-1]
    sweep = newest.sweep
    parameters = [{"name": name, "value": value} for name, value in newest.trial.inputs.items()]
    shared: Json = {
        "templateName": sweep.template["name"],
        "templateScope": f"local/{sweep.name}",
        "boundaryID": sweep.name,
        "startedAt": at,
        "progress": "0/1",
        "inputs": {"parameters": parameters},
    }
    children = [node_id(sweep.name, attempt.name) for attempt in attempts]
    retry = {**_named(sweep.name, newest.step, "Retry"), **shared, "phase": "Running", "finishedAt": None}
    nodes: Json = {retry["id"]: {**retry, "children": children}}
    for attempt, key in zip(attempts, children, strict=True):
        ended = attempt is not newest
        ending = {"outputs": {"exitCode": "75"}, "message": "main: Error (exit code 75)"} if ended else {}
        nodes[key] = {
            **_named(sweep.name, attempt.name, "Pod"),
            **shared,
            "phase": "Failed" if ended else "Running" if attempt.node else "Pending",
            "finishedAt": timestamp(datetime.now(UTC).timestamp()) if ended else None,
            "nodeFlag": {"retried": True},
            **({"hostNodeName": attempt.node} if attempt.node else {}),
            **ending,
        }
    return nodes


def status_of(nodes: Json, began: float, spec_bytes: int) -> Json:
    """Return a workflow's status with its nodes, packed where Argo would pack them."""
    status: Json = {"phase": "Running", "startedAt": timestamp(began), "finishedAt": None, "progress": "0/1"}
    plain = json.dumps(nodes)
    if len(plain) + spec_bytes <= _MOST_STATUS:
        return {**status, "nodes": nodes, "compressedNodes": None}
    packed = base64.b64encode(gzip.compress(plain.encode(), 6, mtime=0)).decode()
    return {**status, "nodes": None, "compressedNodes": packed}


def timestamp(epoch: float) -> str:
    """Return Unix seconds as Kubernetes writes them."""
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _named(workflow: str, name: str, kind: str) -> Mapping[str, Any]:
    return {
        "id": node_id(workflow, name),
        "name": name,
        "displayName": name.removeprefix(f"{workflow}[0]."),
        "type": kind,
    }
