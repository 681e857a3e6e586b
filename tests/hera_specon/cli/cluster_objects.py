"""Objects of a cluster with a sweep in it, as an API server would answer."""

from typing import Any

from hera.workflows import Workflow

from controllers.core import labels
from hera_specon import SpeCon, Sweep, choice, minimize

Json = dict[str, Any]
WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/lab/workflows"
PODS = "/api/v1/namespaces/lab/pods"
BEGAN = "2024-01-01T00:00:00Z"


def workflow(name: str = "vae-x1", *, mlflow: str = "http://mlflow:5000", **status: Any) -> Json:  # noqa: ANN401 - any JSON
    """A sweep of three trials that runs, adopted by a controller unless ``annotations`` say otherwise."""
    with Workflow(generate_name="vae-", entrypoint="vae") as built:
        Sweep(
            name="vae",
            image="trainer:1",
            command=["train"],
            space={"lr": choice(0.1, 0.2, 0.3)},
            search="grid",
            objective=minimize("loss"),
            policy=SpeCon(interval=7),
            mlflow_tracking_uri=mlflow,
        )
    uid = f"uid-{name}"
    annotations = status.pop("annotations", {labels.ANNOTATION_ADOPTED: uid})
    metadata = {"name": name, "namespace": "lab", "uid": uid, "creationTimestamp": BEGAN, "annotations": annotations}
    return {**built.to_dict(), "metadata": metadata, "status": {"phase": "Running", "nodes": {}, **status}}


def pod(number: int, *, of: str = "vae-x1", attempt: int = 0, gated: bool = False, **facts: Any) -> Json:  # noqa: ANN401 - any JSON
    """A trial's pod, running on n1 with 0.05 of 0.1 cores unless ``facts`` say otherwise."""
    trial = f"t{number:03}"
    name = f"{of}-vae-trial-{number}-{attempt}"
    env = {"SPECON_SWEEP_ID": f"uid-{of}.vae", "SPECON_TRIAL_ID": f"uid-{of}.vae.{trial}", "SPECON_TRIAL_PARAMS": "{}"}
    state = facts.get("state", {"running": {"startedAt": BEGAN}})
    had = {"requests": {"cpu": "50m"}}
    return {
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "creationTimestamp": f"2024-01-01T00:0{attempt}:00Z",
            "labels": {
                "workflows.argoproj.io/workflow": of,
                labels.LABEL_SWEEP: "vae",
                labels.LABEL_TRIAL: trial,
            },
            "annotations": {
                "workflows.argoproj.io/node-name": f"{of}[0].trial({number})({attempt})",
                labels.ANNOTATION_OBJECTIVE: "loss",
                labels.ANNOTATION_DIRECTION: "minimize",
                labels.ANNOTATION_BASE_CPU: "0.1",
                **facts.get("annotations", {}),
            },
            "ownerReferences": [
                {
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "Workflow",
                    "name": of,
                    "uid": f"uid-{of}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": "" if gated else facts.get("node", "n1"),
            "containers": [
                {"name": "main", "env": [{"name": n, "value": v} for n, v in env.items()], "resources": had}
            ],
            "schedulingGates": [{"name": labels.GATE_PLACEMENT}, {"name": "other/gate"}] if gated else [],
        },
        "status": {
            "phase": "Pending" if gated else facts.get("phase", "Running"),
            "containerStatuses": [] if gated else [{"name": "main", "state": state, "resources": had}],
        },
    }


def listed(*items: Json) -> Json:
    return {"kind": "List", "items": list(items), "metadata": {"resourceVersion": "1"}}
