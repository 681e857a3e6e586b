"""The workflow of a try-out: one pod, as those of the sweep's trials, that runs a program of ours. Pure."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from controllers.core import labels
from controllers.core.expressions import HELPER_CPU, HELPER_MEMORY
from hera_specon.doctor.tryout import inside
from hera_specon.manifest import Manifest, program, trial_templates
from hera_specon.pod_spec import container_security, pod_security
from mlflow_hooks import contract

LEAST_CPU: Final = 0.05
"""Cores that the pod requests, where no LimitRange wants more; twice as many once it is resized."""
_MEMORY: Final = "128Mi"
_GRACE_S: Final = 1
_KEPT_S: Final = 60
_WITHIN_S: Final = 30
_HOLD_S: Final = 20
_REPORT: Final = "/dev/termination-log"
_SWEEPS: Final[tuple[str, ...]] = (
    "volumes",
    "nodeSelector",
    "tolerations",
    "affinity",
    "securityContext",
    "serviceAccountName",
    "executor",
    "automountServiceAccountToken",
    "hostAliases",
    "priorityClassName",
    "schedulerName",
)
"""Fields of a trial's template that decide where its pod runs, and with what."""
_WORKFLOWS: Final[tuple[str, ...]] = (
    "arguments",
    "volumes",
    "volumeClaimTemplates",
    "imagePullSecrets",
    "serviceAccountName",
    "executor",
    "automountServiceAccountToken",
    "nodeSelector",
    "tolerations",
    "affinity",
    "securityContext",
    "podMetadata",
    "dnsPolicy",
    "dnsConfig",
    "hostAliases",
    "hostNetwork",
    "priorityClassName",
    "podPriorityClassName",
    "schedulerName",
)
_CONTAINERS: Final[tuple[str, ...]] = (
    "image",
    "imagePullPolicy",
    "envFrom",
    "volumeMounts",
    "securityContext",
    "workingDir",
)
_OF_WORKFLOW: Final = re.compile(r"\{\{\s*(?:workflow\.parameters\.[\w-]+|workflow\.(?:name|uid|namespace))\s*\}\}")
_OWN: Final = frozenset({contract.ENV_STATE_ROOT, contract.ENV_STATE_STORE})


def sweep_workflow(manifest: Manifest, *, name: str, cpu: float, gated: bool, timeout_s: float) -> dict[str, Any]:
    """Return the workflow that tries out what the first sweep of ``manifest`` needs.

    Args:
        manifest: a workflow with a sweep.
        name: of the new workflow.
        cpu: cores to request.
        gated: whether a scheduling gate holds the pod until it is opened.
        timeout_s: seconds after which Argo ends it by itself.
    """
    template = next(trial_templates(manifest))
    spec = manifest.get("spec") or {}
    metadata = template.get("metadata") or {}
    marks, notes = (_theirs(metadata.get(kind) or {}) for kind in ("labels", "annotations"))
    given = program(template)
    container = {field: given[field] for field in _CONTAINERS if field in given}
    container["env"] = [entry for entry in given.get("env") or [] if _stays(entry)]
    own = {field: template[field] for field in _SWEEPS if field in template}
    own["metadata"] = {"labels": marks, "annotations": notes}
    whole = {field: spec[field] for field in _WORKFLOWS if field in spec}
    made = _workflow(name, whole, own, _probe(container, cpu, mlflow=True), gated=gated, timeout_s=timeout_s)
    # Some controllers of Argo take only workflows with a label of their own.
    made["metadata"]["labels"] |= _theirs((manifest.get("metadata") or {}).get("labels") or {})
    return made


def image_workflow(
    image: str, tracking_uri: str | None, *, name: str, cpu: float, gated: bool, timeout_s: float
) -> dict[str, Any]:
    """Return the workflow that tries out an image without a sweep; see ``sweep_workflow``."""
    env = [] if tracking_uri is None else [{"name": "MLFLOW_TRACKING_URI", "value": tracking_uri}]
    container = {
        "image": image,
        "env": env,
        "securityContext": container_security().dict(exclude_none=True, by_alias=True),
    }
    own = {"securityContext": pod_security().dict(exclude_none=True, by_alias=True)}
    probe = _probe(container, cpu, mlflow=tracking_uri is not None)
    return _workflow(name, {}, own, probe, gated=gated, timeout_s=timeout_s)


def _workflow(
    name: str,
    whole: Mapping[str, Any],
    own: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    gated: bool,
    timeout_s: float,
) -> dict[str, Any]:
    helper = {"resources": {"requests": {"cpu": HELPER_CPU, "memory": HELPER_MEMORY}}}
    patch = {
        "terminationGracePeriodSeconds": _GRACE_S,
        "containers": [{"name": "wait", **helper}],
        "initContainers": [{"name": "init", **helper}],
        **({"schedulingGates": [{"name": labels.GATE_PLACEMENT}]} if gated else {}),
    }
    template = {**own, "name": "try-out", "container": dict(container), "podSpecPatch": json.dumps(patch)}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "specon-doctor"}},
        "spec": {
            **whole,
            "entrypoint": "try-out",
            "templates": [template],
            # Where nobody is left to remove it, Argo does.
            "activeDeadlineSeconds": round(timeout_s) + _KEPT_S,
            "ttlStrategy": {"secondsAfterCompletion": _KEPT_S},
        },
    }


def _probe(container: Mapping[str, Any], cpu: float, *, mlflow: bool) -> dict[str, Any]:
    order = {"report": _REPORT, "within_s": _WITHIN_S, "hold_s": _HOLD_S, "mlflow": mlflow}
    return {
        **container,
        "command": ["python3", "-c", program_text()],
        "args": [json.dumps(order)],
        "resources": {"requests": {"cpu": f"{round(cpu * 1000)}m", "memory": _MEMORY}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def program_text() -> str:
    """Return the text of the program that the pod runs."""
    return Path(inside.__file__).read_text(encoding="utf-8")


def _theirs(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels or annotations that are not ours: a controller must not take the pod for a trial's."""
    return {name: value for name, value in named.items() if not name.startswith(labels.DOMAIN) and _filled_in(value)}


def _stays(entry: Mapping[str, Any]) -> bool:
    """Return whether the pod has this variable of a trial's: not who the trial is."""
    name = str(entry.get("name"))
    ours = name.startswith("SPECON_") or name in {"RANK", "WORLD_SIZE", "MLFLOW_RUN_CONTEXT"}
    return (not ours or name in _OWN) and _filled_in(entry.get("value", ""))


def _filled_in(value: object) -> bool:
    """Return whether Argo can fill in a text of a trial's without the trial's own inputs."""
    return "{{" not in _OF_WORKFLOW.sub("", str(value))
