"""The project's own manifests on a cluster, applied as a user would, and a way in from this machine."""

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.kubectl import JsonObject, Kubectl
from tests.cluster.processes import wait_until

MANIFESTS: Final = Path(__file__).parents[2] / "manifests"
DEPLOYMENTS: Final = ("mlflow", "specon-controller")
MLFLOW_PORT: Final = 5000
_USER: Final = 65532
_READY_S: Final = 300


@dataclass(frozen=True, kw_only=True)
class Installation:
    """A kustomization of a user's own, beside the manifests.

    Attributes:
        overlay: one of ``manifests/overlays`` that brings an MLflow.
        namespace: where everything goes.
        components: some of ``manifests/components``.
        settings: of the controller, by variable.
        pods: what is merged into the specification of all pods.
    """

    overlay: str
    namespace: str
    components: Sequence[str] = ()
    settings: Mapping[str, str]
    pods: JsonObject

    def rendered(self, kubectl: Kubectl, folder: Path) -> str:
        """Return the objects as YAML; ``folder`` is made for the kustomization."""
        folder.mkdir()

        def beside(path: Path) -> str:
            return os.path.relpath(path, folder.resolve())

        named = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "all"}}
        patch = {**named, "spec": {"template": {"spec": self.pods}}}
        literals = [f"{name}={value}" for name, value in self.settings.items()]
        written = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": self.namespace,
            "resources": [beside(MANIFESTS / "overlays" / self.overlay)],
            "components": [beside(MANIFESTS / "components" / name) for name in self.components],
            "configMapGenerator": [
                {"name": "specon-controller-settings", "behavior": "merge", "literals": literals},
            ],
            "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(patch)}],
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(written))
        return kubectl("kustomize", folder)


@contextmanager
def installed(kubectl: Kubectl, installation: Installation, folder: Path) -> Iterator[Kubectl]:
    """Apply the manifests, wait until all is ready, and take everything away in the end.

    MLflow keeps its data in ``folder``, which the nodes have to see. Yields kubectl in the installation's namespace.
    """
    namespace = installation.namespace
    text = installation.rendered(kubectl, folder / "installation")
    volume = host_volume("mlflow", namespace, folder / "mlflow", "ReadWriteOnce")
    if not any(one["kind"] == "Namespace" for one in yaml.safe_load_all(text)):
        kubectl("create", "namespace", namespace)
    try:
        kubectl("apply", "--server-side", "--filename", "-", text_input=text)
        kubectl.create([volume])
        inside = Kubectl(kubectl.kubeconfig, namespace)
        for name in DEPLOYMENTS:
            inside("rollout", "status", f"deployment/{name}", f"--timeout={_READY_S}s", seconds=_READY_S + 10)
        yield inside
    finally:
        kubectl("delete", "--ignore-not-found", "--wait=false", "--filename", "-", text_input=text)
        kubectl("delete", "persistentvolume", volume["metadata"]["name"], "--ignore-not-found", "--wait=false")
        kubectl("delete", "namespace", namespace, "--ignore-not-found", "--timeout=120s")


def host_volume(claim: str, namespace: str, folder: Path, mode: str) -> dict[str, Any]:
    """Return a volume for a claim: a folder of the machine that all nodes share, made for the pods' user."""
    folder.mkdir()
    os.chown(folder, _USER, _USER)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{namespace}-{claim}"},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": [mode],
            "storageClassName": "",
            "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": namespace, "name": claim},
        },
    }


@contextmanager
def forwarded(kubectl: Kubectl, service: str, port: int = MLFLOW_PORT) -> Iterator[str]:
    """Forward a free port of this machine to a service, and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        here = free.getsockname()[1]
    command = [*kubectl.command, "port-forward", f"service/{service}", f"{here}:{port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _answers(here), f"port {here} is forwarded to {service}", 30)
            yield f"http://127.0.0.1:{here}"
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
