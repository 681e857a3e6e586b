"""What a node's labels tell of its devices: which they are, and how many trials share one. Pure.

Sources: NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery and internal/lm; the page on GPU sharing of Google
Kubernetes Engine; ROCm/k8s-device-plugin, cmd/k8s-node-labeller; the page "Labels" of Intel's device plugins.
"""

from collections.abc import Mapping
from typing import Final

from controllers.core.devices import GPU, Devices

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""Where nobody names the devices: in most clouds, machines of one type have the same."""
MOST_REPLICAS: Final = 1024
_MOST_DIGITS: Final = 4
_PRODUCTS: Final = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",
)
_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"
_GOOGLE: Final = "cloud.google.com/gke-"
_GOOGLES_REPLICAS: Final = f"{_GOOGLE}max-shared-clients-per-gpu"
_PARTITION: Final = "nvidia.com/mig-"
_RENAMED: Final = ".shared"


def device_model(labels: Mapping[str, str], devices: Devices) -> str:
    """Return what a node's ``devices`` are, as far as a label tells; empty where none does.

    Devices of one model are as fast as each other for trials that ask for the same kind. NVIDIA's product says
    ``-SHARED`` of replicas and ``-MIG-1g.5gb`` of partitions. Under MPS each replica has its part of the threads, so
    that it is as fast as others only where there are as many.
    """
    if not devices:
        return ""
    named = next((product for label in _PRODUCTS if (product := labels.get(label))), "") or _googles(labels)
    if not named:
        return labels.get(INSTANCE_TYPE, "")
    strategy = labels.get(_STRATEGY) or labels.get(f"{_GOOGLE}gpu-sharing-strategy", "")
    parts = max((times for _, times in replicas_told(labels, devices).counts), default=0)
    return f"{named}-MPS-{parts}" if strategy.lower() == "mps" and parts else named


def _googles(labels: Mapping[str, str]) -> str:
    """Return what Google's labels say: there, machines of one type may have unlike GPUs."""
    named, partition = labels.get(f"{_GOOGLE}accelerator", ""), labels.get(f"{_GOOGLE}gpu-partition-size", "")
    shared = "-SHARED" if _number(labels.get(_GOOGLES_REPLICAS, "")) > 1 else ""
    return f"{named}{'-MIG-' if partition else ''}{partition}{shared}" if named else ""


def replicas_told(labels: Mapping[str, str], devices: Devices) -> Devices:
    """Return of each kind of ``devices`` that is shared as how many devices each is advertised."""
    told = {kind: min(_number(_written(labels, kind)), MOST_REPLICAS) for kind, _ in devices.counts}
    return Devices.of({kind: times for kind, times in told.items() if times > 1})


def _written(labels: Mapping[str, str], kind: str) -> str:
    """Return what a label says of the replicas of ``kind``.

    It bears the name that the kind had before it was renamed: ``nvidia.com/gpu.shared`` and the like.
    """
    if kind.startswith(_PARTITION):
        return labels.get(f"{kind.removesuffix(_RENAMED)}.replicas", "")
    if kind == GPU or kind.startswith(f"{GPU}."):
        return labels.get(f"{GPU}.replicas") or labels.get(_GOOGLES_REPLICAS, "")
    return ""


def _number(written: str) -> int:
    return int(written) if written.isascii() and written.isdecimal() and len(written) <= _MOST_DIGITS else 1
