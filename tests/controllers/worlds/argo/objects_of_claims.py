"""Devices behind resource claims, as drivers, people and Kubernetes write them."""

from typing import Any

from tests.controllers.worlds.argo.objects import NAMESPACE, Json

DRIVER = "gpu.example.com"
CLASS = "gpu.example.com"
KIND = f"deviceclass.resource.kubernetes.io/{CLASS}"


def device(name: str, **more: Any) -> Json:  # noqa: ANN401 - JSON
    return {"name": name, "attributes": {"type": {"string": "gpu"}}, **more}


def device_slice(on: str, *devices: Json, driver: str = DRIVER, generation: int = 1, parts: int = 1) -> Json:
    return {
        "metadata": {"name": f"{on}-{driver}-{generation}"},
        "spec": {
            "driver": driver,
            "pool": {"name": on, "generation": generation, "resourceSliceCount": parts},
            "nodeName": on,
            "devices": list(devices),
        },
    }


def device_class(name: str = CLASS, *expressions: str) -> Json:
    written = expressions or (f"device.driver == '{DRIVER}'",)
    return {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}} for expression in written]},
    }


def request(count: int | None = None, of: str = CLASS, **more: Any) -> Json:  # noqa: ANN401 - JSON
    amount = {} if count is None else {"count": count}
    return {"name": "gpu", "exactly": {"deviceClassName": of, "allocationMode": "ExactCount", **amount, **more}}


def claim(name: str, pod: Json | None = None, *requests: Json, given: tuple[str, ...] = (), on: str = "") -> Json:
    """Return a claim of ``pod`` that was ``given`` devices of the pool ``on`` a node."""
    owner = [] if pod is None else [{"kind": "Pod", "controller": True, "uid": pod["metadata"]["uid"]}]
    results = [{"request": "gpu", "driver": DRIVER, "pool": on, "device": one} for one in given]
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": owner},
        "spec": {"devices": {"requests": list(requests) or [request()]}},
        "status": {"allocation": {"devices": {"results": results}}} if results else {},
    }


def claiming(item: Json, *made: str, template: str = "one-gpu") -> Json:
    """Return a pod that claims a device, for which Kubernetes has ``made`` claims."""
    item["metadata"].setdefault("uid", f"uid-of-{item['metadata']['name']}")
    item["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    item["spec"]["containers"][1]["resources"]["claims"] = [{"name": "gpu"}]
    item["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": name} for name in made]
    return item
