"""A namespace as users of sweeps have it: with a volume for checkpoints, and accounts for executors and controller."""

import base64
import json
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.argo_install import executor_permissions
from tests.cluster.cluster import Cluster
from tests.cluster.sweeps import descent
from tests.cluster.sweeps.descent_sweep import CLAIM, JOBS

ACCOUNT: Final = "specon-controller"
_WATCH: Final = ["get", "list", "watch"]


def make_namespace(cluster: Cluster, name: str, state: Path) -> None:
    """Create the namespace ``name``, whose trials keep their state in the host's folder ``state``."""
    state.mkdir(parents=True)
    state.chmod(0o777)
    cluster.kubectl.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    jobs = {"descent.py": Path(descent.__file__).read_text()}
    cluster.kubectl.create(
        [
            *executor_permissions(name),
            _object("v1", "ConfigMap", JOBS, name) | {"data": jobs},
            *_volume(name, state),
            *_controller_permissions(name),
        ]
    )


def remove_namespace(cluster: Cluster, name: str) -> None:
    """Delete all that ``make_namespace`` made, without waiting for it."""
    cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")
    for kind in ("persistentvolume", "clusterrole", "clusterrolebinding"):
        cluster.kubectl("delete", kind, name, "--wait=false", "--ignore-not-found")


def controller_kubeconfig(cluster: Cluster, namespace: str, path: Path) -> Path:
    """Write a kubeconfig file with which one acts as the controller's service account and nothing else."""
    token = cluster.kubectl("--namespace", namespace, "create", "token", ACCOUNT, "--duration=3h").strip()
    admin = yaml.safe_load(cluster.kubeconfig.read_text())
    server = admin["clusters"][0]["cluster"]
    if "certificate-authority" in server:
        authority = Path(server.pop("certificate-authority")).read_bytes()
        server["certificate-authority-data"] = base64.b64encode(authority).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": server}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "cluster", "user": ACCOUNT, "namespace": namespace}}],
        "current-context": "c",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def _object(version: str, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _volume(namespace: str, state: Path) -> list[dict[str, Any]]:
    size = {"storage": "1Gi"}
    modes = ["ReadWriteMany"]
    volume = {
        "capacity": size,
        "accessModes": modes,
        "storageClassName": "",
        "hostPath": {"path": str(state), "type": "Directory"},
        "claimRef": {"namespace": namespace, "name": CLAIM},
    }
    claim = {"accessModes": modes, "storageClassName": "", "volumeName": namespace, "resources": {"requests": size}}
    return [
        _object("v1", "PersistentVolume", namespace) | {"spec": volume},
        _object("v1", "PersistentVolumeClaim", CLAIM, namespace) | {"spec": claim},
    ]


def _controller_permissions(namespace: str) -> list[dict[str, Any]]:
    rules = [
        _rule("", ["pods"], [*_WATCH, "patch", "delete"]),
        _rule("", ["pods/resize"], ["patch"]),
        _rule("", ["pods/exec"], ["get", "create"]),
        _rule("", ["configmaps"], [*_WATCH, "create", "update", "patch"]),
        _rule("argoproj.io", ["workflows"], [*_WATCH, "patch"]),
        _rule("events.k8s.io", ["events"], ["create", "patch"]),
        _rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
    ]
    everywhere = [_rule("", ["nodes", "pods"], _WATCH)]
    return [
        _object("v1", "ServiceAccount", ACCOUNT, namespace),
        _object("rbac.authorization.k8s.io/v1", "Role", ACCOUNT, namespace) | {"rules": rules},
        _binding("RoleBinding", "Role", ACCOUNT, namespace),
        _object("rbac.authorization.k8s.io/v1", "ClusterRole", namespace) | {"rules": everywhere},
        _binding("ClusterRoleBinding", "ClusterRole", namespace, namespace),
    ]


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _binding(kind: str, role_kind: str, name: str, namespace: str) -> dict[str, Any]:
    found = _object("rbac.authorization.k8s.io/v1", kind, name, namespace if kind == "RoleBinding" else None)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": name}
    return found | {"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]}
