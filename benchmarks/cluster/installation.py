"""The project's own manifests on the test cluster, on a node of their own beside those that train."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.cluster.cluster import Cluster
from tests.cluster.images.build import build_images
from tests.cluster.installation import Installation, host_volume, installed
from tests.cluster.kubectl import JsonObject, Kubectl
from tests.cluster.layout import NodeSpec

ROOT: Final = Path(__file__).parents[2]
NAMESPACE: Final = "hera-specon"
SERVICES: Final = "services"
TRAINING: Final = (
    NodeSpec("node-1", 1, cores=0.4, cpu=1),
    NodeSpec("node-2", 2, cores=0.4, cpu=1),
    NodeSpec("node-3", 3, cores=0.4, cpu=0),
)
NODES: Final = (*TRAINING, NodeSpec(SERVICES, 4, cores=0.6, cpu=0))
_STATE: Final = "specon-state"
_TAINT: Final = "hera-specon.io/services"


@contextmanager
def cluster_with_controller(tell: Callable[[str], None]) -> Iterator[Kubectl]:
    """Bring up a cluster with everything installed, and take it down in the end."""
    cluster = Cluster(nodes=NODES, tell=tell)
    place = {
        "nodeSelector": {"kubernetes.io/hostname": SERVICES},
        "tolerations": [{"key": _TAINT, "operator": "Exists"}],
    }
    installation = Installation(overlay="namespaced-with-mlflow", namespace=NAMESPACE, settings={}, pods=place)
    with tempfile.TemporaryDirectory() as folder:
        try:
            cluster.up(list(build_images(tell=tell).values()))
            tell("installing controller and MLflow")
            cluster.kubectl("taint", "nodes", SERVICES, f"{_TAINT}=:NoSchedule")
            with installed(cluster.kubectl, installation, Path(folder)) as inside:
                inside.create(_state(Path(folder) / _STATE))
                yield inside
        finally:
            cluster.down()


def _state(folder: Path) -> list[JsonObject]:
    """The volume that trials keep their state in."""
    volume = host_volume(_STATE, NAMESPACE, folder, "ReadWriteMany")
    spec = {
        "accessModes": volume["spec"]["accessModes"],
        "storageClassName": "",
        "volumeName": volume["metadata"]["name"],
        "resources": {"requests": volume["spec"]["capacity"]},
    }
    metadata = {"name": _STATE, "namespace": NAMESPACE}
    return [volume, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}]
