"""ResourceQuotas, LimitRanges and pods in a Kueue queue, as an API server shows them."""

from typing import Any

from controllers.core import kueue
from tests.controllers.worlds.argo.objects import NAMESPACE, Json


def quota(used: dict[str, str], **hard: str) -> Json:
    """Return a quota; ``requests_cpu`` stands for ``requests.cpu``."""
    named = {name.replace("_", "."): amount for name, amount in hard.items()}
    return {
        "metadata": {"name": "q", "namespace": NAMESPACE},
        "spec": {"hard": named},
        "status": {"hard": named, "used": used},
    }


def limit_range(*limits: dict[str, Any]) -> Json:
    return {"metadata": {"name": "r", "namespace": NAMESPACE}, "spec": {"limits": list(limits)}}


def queued(made: Json, *, alone: bool = True, admitted: bool = True, queue: str = "team") -> Json:
    """Return a pod as Kueue's webhook changes it: a group of one where it is ``alone``."""
    metadata, spec = made["metadata"], made["spec"]
    metadata["labels"] |= {kueue.LABEL_QUEUE: queue, kueue.LABEL_MANAGED: "true"}
    if alone:
        metadata["labels"][kueue.LABEL_GROUP] = metadata["name"]
        metadata["annotations"] |= {kueue.ANNOTATION_GROUP_SIZE: "1", kueue.ANNOTATION_RETRIABLE: "false"}
    if not admitted:
        gates = [
            {"name": "kueue.x-k8s.io/admission"},
            *spec.get("schedulingGates", ()),
            {"name": "kueue.x-k8s.io/topology"},
        ]
        spec["schedulingGates"] = gates
    return made
