"""The project's own manifests on the test cluster, beside the nodes that train: controller, MLflow, a sweep's needs."""

import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.images.build import build_images
from tests.cluster.kubectl import Kubectl
from tests.cluster.layout import NodeSpec
from tests.cluster.processes import wait_until

ROOT: Final = Path(__file__).parents[2]
OVERLAY: Final = ROOT / "manifests" / "overlays" / "namespaced-with-mlflow"
NAMESPACE: Final = "hera-specon"
SERVICES: Final = "services"
TRAINING: Final = (
    NodeSpec("node-1", 1, cores=0.4, cpu=1),
    NodeSpec("node-2", 2, cores=0.4, cpu=1),
    NodeSpec("node-3", 3, cores=0.4, cpu=0),
)
NODES: Final = (*TRAINING, NodeSpec(SERVICES, 4, cores=0.6, cpu=0))
_TAINT: Final = "hera-specon.io/services"
_USER: Final = 65532
_READY_S: Final = 300


@contextmanager
def installed(tell: Callable[[str], None]) -> Iterator[Kubectl]:
    """Bring up a cluster with everything installed, and take it down in the end."""
    cluster = Cluster(nodes=NODES, tell=tell)
    with tempfile.TemporaryDirectory() as folder:
        try:
            cluster.up(list(build_images(tell=tell).values()))
            tell("installing controller and MLflow")
            yield _install(cluster, Path(folder))
        finally:
            cluster.down()


def _install(cluster: Cluster, folder: Path) -> Kubectl:
    cluster.kubectl("taint", "nodes", SERVICES, f"{_TAINT}=:NoSchedule")
    inside = Kubectl(cluster.kubeconfig, NAMESPACE)
    _apply(cluster.kubectl, _overlay(folder / "installation"))
    cluster.kubectl.create([*_volume("mlflow", folder, "ReadWriteOnce"), *_volume("specon-state", folder)])
    for name in ("mlflow", "specon-controller"):
        inside("rollout", "status", f"deployment/{name}", f"--timeout={_READY_S}s", seconds=_READY_S + 10)
    return inside


def _overlay(folder: Path) -> Path:
    """Write a kustomization as a user would: the bundled overlay, its pods kept away from the nodes that train."""
    folder.mkdir()
    place = {
        "nodeSelector": {"kubernetes.io/hostname": SERVICES},
        "tolerations": [{"key": _TAINT, "operator": "Exists"}],
    }
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "all"}}
    patch = {**deployment, "spec": {"template": {"spec": place}}}
    (folder / "kustomization.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "namespace": NAMESPACE,
                "resources": [os.path.relpath(OVERLAY, folder.resolve())],
                "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(patch)}],
            }
        )
    )
    return folder


def _apply(kubectl: Kubectl, folder: Path) -> None:
    kubectl("create", "namespace", NAMESPACE)
    text = kubectl("kustomize", folder)
    kubectl("apply", "--server-side", "--filename", "-", text_input=text)


def _volume(claim: str, folder: Path, mode: str = "ReadWriteMany") -> list[dict[str, Any]]:
    path = folder / claim
    path.mkdir()
    os.chown(path, _USER, _USER)
    size = {"storage": "5Gi"}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": claim},
        "spec": {
            "capacity": size,
            "accessModes": [mode],
            "storageClassName": "",
            "hostPath": {"path": str(path)},
            "claimRef": {"namespace": NAMESPACE, "name": claim},
        },
    }
    if claim == "mlflow":
        return [volume]
    spec = {"accessModes": [mode], "storageClassName": "", "volumeName": claim, "resources": {"requests": size}}
    metadata = {"name": claim, "namespace": NAMESPACE}
    return [volume, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}]


@contextmanager
def forwarded(kubectl: Kubectl, service: str, port: int) -> Iterator[str]:
    """Forward a free port of this machine to a service, and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        here = free.getsockname()[1]
    command = [*kubectl.command, "port-forward", f"service/{service}", f"{here}:{port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: _answers(here), f"port {here} is forwarded to {service}", 30)
        yield f"http://127.0.0.1:{here}"
        process.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
