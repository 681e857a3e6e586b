"""What stands in a cluster before the first sweep: a namespace, Argo's kind of object, nodes, and what runs on each."""

from collections.abc import Iterator
from typing import Final

from benchmarks.scale.argo import timestamp
from benchmarks.scale.manifest import Json
from benchmarks.scale.size import NAMESPACE, NODE_CPU, node_name

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CONDITIONS: Final = {
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


def namespace() -> Json:
    """Return the namespace of the sweeps."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def service_account(where: str) -> Json:
    """Return the service account that every pod has; a controller manager would make it."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": where}}


def workflow_kind() -> Json:
    """Return the definition of Workflow, as Argo's minimal manifests have it."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-map-type": "atomic"}
    schema = {
        "type": "object",
        "required": ["metadata", "spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": free,
            "status": free,
        },
    }
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Workflow", "listKind": "WorkflowList", "plural": "workflows", "singular": "workflow"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "workflows.argoproj.io"},
        "spec": {"group": "argoproj.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def nodes(number: int, kubelet_port: int, now: float) -> Iterator[Json]:
    """Yield nodes that are ready, as their kubelets would register them; all are found at ``kubelet_port``."""
    for index in range(number):
        yield _node(node_name(index), kubelet_port, timestamp(now))


def _node(name: str, port: int, now: str) -> Json:
    amounts = {"cpu": f"{NODE_CPU:g}", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    conditions = [
        {"type": kind, "status": status, "reason": why, "message": text, "lastTransitionTime": now}
        for kind, (status, why, text) in _CONDITIONS.items()
    ]
    marks = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": marks},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            # So that the API server hands a WebSocket on as it is, instead of turning it into SPDY.
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": "v1.36.2",
                "containerRuntimeVersion": "containerd://2.1.0",
                "kernelVersion": "6.1.0",
                "osImage": "simulated",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
                "kubeProxyVersion": "",
            },
        },
    }


def daemon_pods(number: int) -> Iterator[Json]:
    """Yield a pod for each node that is no trial: every real node has some."""
    for index in range(number):
        name = node_name(index)
        container = {
            "name": "proxy",
            "image": "registry.k8s.io/kube-proxy:v1.36.2",
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        }
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"proxy-{name}", "namespace": "default", "labels": {"app": "proxy"}},
            "spec": {"nodeName": name, "containers": [container], "tolerations": [{"operator": "Exists"}]},
        }
