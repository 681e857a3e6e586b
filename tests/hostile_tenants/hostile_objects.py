"""Objects that a tenant may write into a namespace of its own, to harm their readers."""

import base64
import copy
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from controllers.core import labels
from controllers.core.labels import PARAMETER_CONTINUE
from tests.controllers.worlds.argo.fake_api import Json
from tests.controllers.worlds.argo.objects import template

POLICY: Final = "default"
ABSURD_CPU: Final = "1000000"
_INSTANCE: Final = "workflows.argoproj.io/controller-instanceid"
_PLACEHOLDER: Final = "{{inputs.parameters.p}}"
_MIB: Final = 2**20


def packed(text: str) -> str:
    """Return ``text`` as gzip and base64 pack it: a thousandth of it where it repeats itself."""
    return base64.b64encode(gzip.compress(text.encode())).decode()


def empty_lists() -> str:
    """Return sixty megabytes of JSON: each three bytes of it become an object of fifty-six."""
    return '{"a":[' + "[]," * (20 * _MIB) + "[]]}"


def long_text() -> str:
    """Return JSON with one string of a hundred and twenty megabytes."""
    return '{"a":"' + "x" * (120 * _MIB) + '"}'


def hostile_workflow(
    namespace: str,
    name: str,
    templates: Sequence[Json] | None = None,
    *,
    status: Mapping[str, object] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Json:
    """Return a workflow with a sweep. Argo leaves it alone, as the label says that another controller runs it."""
    given = [{"name": parameter, "value": value} for parameter, value in (parameters or {}).items()]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name, "namespace": namespace, "labels": {_INSTANCE: "nobody"}},
        "spec": {
            "entrypoint": "main",
            "arguments": {"parameters": given},
            "templates": [{"name": "main", "steps": []}, *(templates or [template("a")])],
        },
        "status": {"phase": "Running", **(status or {})},
    }


def unpacks_to(namespace: str, name: str, nodes: str) -> Json:
    """Return a workflow whose status unpacks to ``nodes``."""
    return hostile_workflow(namespace, name, status={"compressedNodes": packed(nodes)})


def full_of_placeholders(namespace: str, name: str) -> Json:
    """Return a workflow with two thousand placeholders that stand for eight thousand letters each, twenty times."""
    expanding = template("a")
    expanding["container"]["env"] += [{"name": f"E{number}", "value": _PLACEHOLDER * 2000} for number in range(20)]
    step = {
        "id": "step",
        "name": f"{name}[0].a",
        "type": "Retry",
        "templateName": "a",
        "phase": "Running",
        "inputs": {"parameters": [{"name": "p", "value": "x" * 8000}]},
    }
    return hostile_workflow(namespace, name, [expanding], status={"nodes": {"step": step}})


def of_many_policies(namespace: str, name: str, number: int = 3000) -> Json:
    """Return a workflow that wants each of its ``number`` sweeps to be steered by a policy of its own."""
    crowd = []
    for one in range(number):
        made = template(f"t{one}", f"specon:interval={one + 1}")
        made["container"]["env"][0]["value"] = "{{workflow.uid}}" + f".s{one}.a"
        crowd.append(made)
    return hostile_workflow(namespace, name, crowd)


def continuing(namespace: str, name: str, uid: str, sweep: str) -> Json:
    """Return a workflow that says it goes on with ``sweep`` of the workflow with ``uid``, which is somebody else's."""
    taken = template("a")
    taken["container"]["env"][0]["value"] = f"{uid}.{sweep}.t001"
    return hostile_workflow(namespace, name, [taken], parameters={PARAMETER_CONTINUE: uid})


def forged_pod(victim: Json, namespace: str, name: str, cpu: str = "1m", **spec: object) -> Json:
    """Return a pod of another namespace that says of itself all that ``victim`` says: owner, labels, annotations."""
    metadata, main = victim["metadata"], _main_of(victim)
    kept = ("labels", "annotations", "ownerReferences")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **{part: copy.deepcopy(metadata[part]) for part in kept}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [_container(main["env"], cpu)],
            **spec,
        },
    }


def claim(namespace: str, name: str, owner: Json, node: str, cpu: str = ABSURD_CPU) -> Json:
    """Return a pod that says it was placed on ``node``; it requests more than there is, and so never starts."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    trial = {"name": "SPECON_TRIAL_ID", "value": f"{metadata['uid']}.sweep.a"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                "workflows.argoproj.io/workflow": metadata["name"],
                labels.LABEL_SWEEP: "sweep",
                labels.LABEL_TRIAL: "a",
            },
            "annotations": {
                labels.ANNOTATION_OBJECTIVE: "loss",
                labels.ANNOTATION_DIRECTION: "minimize",
                labels.ANNOTATION_PLACED_ON: node,
            },
            "ownerReferences": [reference],
        },
        "spec": {"restartPolicy": "Never", "containers": [_container([trial], cpu)]},
    }


def journal(namespace: str, workflow_uid: str, state: str, policy: str = POLICY) -> Json:
    """Return the ConfigMap that the controller takes for its own state of a workflow, with ``state`` in it."""
    name = f"specon-{workflow_uid}-{hashlib.sha256(policy.encode()).hexdigest()[:8]}"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "binaryData": {"state": packed(state)},
    }


def _container(env: object, cpu: str) -> Json:
    return {
        "name": "main",
        "image": "hera-specon.io/nothing:1",
        "imagePullPolicy": "Never",
        "command": ["/nothing"],
        "env": copy.deepcopy(env),
        "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}},
    }


def _main_of(pod: Json) -> Json:
    return dict(next(one for one in pod["spec"]["containers"] if one["name"] == "main"))
