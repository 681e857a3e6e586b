"""A gang's pods and Argo's nodes of it, as an API server shows them."""

from typing import Any

from controllers.core import labels
from tests.controllers.worlds.argo.objects import UID, WORKFLOW, Json, pod, steps, trial, workflow

TRIAL = trial("g")


def worker(rank: int, attempt: int = 0, **changes: Any) -> Json:  # noqa: ANN401
    """Return the pod of a worker of gang ``g``, with ``size`` of its attempt and the ``least`` number of workers."""
    size, least = changes.pop("size", 2), changes.pop("least", 1)
    notes = {
        labels.ANNOTATION_WORKERS: "4",
        labels.ANNOTATION_MIN_WORKERS: str(least),
        labels.ANNOTATION_WORLD_SIZE: str(size),
        labels.ANNOTATION_ATTEMPT: f"{UID}.{attempt}",
        "workflows.argoproj.io/node-name": f"{WORKFLOW}[0].g({attempt})[0].worker({rank}:{rank})",
        "workflows.argoproj.io/node-id": f"{WORKFLOW}-g-{attempt}-{rank}",
    }
    made = pod("g", attempt, **changes | {"notes": notes | changes.get("notes", {})})
    made["metadata"]["name"] = name_of(rank, attempt)
    return made


def ended(exit_code: int, rank: int, attempt: int = 0, **changes: Any) -> Json:  # noqa: ANN401
    phase = "Failed" if exit_code else "Succeeded"
    return worker(rank, attempt, state="terminated", exit_code=exit_code, phase=phase, **changes)


def name_of(rank: int, attempt: int = 0) -> str:
    return f"{WORKFLOW}-g-{attempt}-{rank}"


def gang_workflow(*attempts: list[tuple[str, str | None]], phase: str = "Running", **notes: str) -> Json:
    """Return the workflow of gang ``g`` with Argo's record of ``attempts``: (node, exit code) of each worker.

    ``notes`` are its annotations: ``gang`` and ``left`` of the gang, ``adopted`` of a workflow without its own.
    """
    nodes = steps("g", phase)
    parent = nodes[f"{WORKFLOW}-g"]
    parent["templateName"] = "g-trial"
    for number, workers in enumerate(attempts):
        key = f"{WORKFLOW}-g-{number}"
        pods = {f"{key}-{rank}": one for rank, one in enumerate(workers)}
        parent["children"].append(key)
        nodes[key] = {"id": key, "name": f"{WORKFLOW}[0].g({number})", "type": "Steps", "children": [f"{key}-group"]}
        nodes[f"{key}-group"] = {"id": f"{key}-group", "type": "StepGroup", "children": list(pods)}
        for child, (host, code) in pods.items():
            outputs = {} if code is None else {"exitCode": code}
            nodes[child] = {
                "id": child,
                "type": "Pod",
                "templateName": "g-worker",
                "hostNodeName": host,
                "outputs": outputs,
            }
    made = workflow(nodes, templates=_templates())
    written = {labels.ANNOTATION_ADOPTED: notes.get("adopted", UID)}
    written |= {f"hera-specon.io/{name}-sweep-g": notes[name] for name in ("gang", "left", "stop") if name in notes}
    made["metadata"]["annotations"] = {name: value for name, value in written.items() if value}
    return made


def _templates() -> list[Json]:
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
    notes |= {labels.ANNOTATION_WORKERS: "4", labels.ANNOTATION_MIN_WORKERS: "1"}
    step = {"name": "worker", "template": "g-worker", "withSequence": {"count": "2"}}
    return [
        {"name": "g-trial", "retryStrategy": {"limit": 200}, "steps": [[step]]},
        {
            "name": "g-worker",
            "metadata": {"labels": {labels.LABEL_SWEEP: "sweep", labels.LABEL_TRIAL: "g"}, "annotations": notes},
            "container": {
                "env": [{"name": "SPECON_TRIAL_ID", "value": "{{workflow.uid}}.sweep.g"}],
                "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}},
            },
        },
    ]
