"""A namespace as users of sweeps have it: with a volume for checkpoints, and accounts for executors and controller."""

import base64
import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from hera_specon.doctor.checks.permissions import READ
from hera_specon.doctor.facts import Permission
from tests.cluster.kubectl import Kubectl
from tests.cluster.namespaces import namespace
from tests.cluster.sweeps import descent, gang_descent
from tests.cluster.sweeps.descent_sweep import CLAIM, JOBS
from tests.manifests.kustomize import MANIFESTS, render

ACCOUNT: Final = "specon-controller"
READER: Final = "reader"
_OF_THE_CLUSTER: Final = frozenset({"ClusterRole", "ClusterRoleBinding"})


@contextlib.contextmanager
def sweep_namespace(kubectl: Kubectl, name: str, state: Path) -> Iterator[Kubectl]:
    """Make a namespace whose trials keep their state in the host's folder ``state``, and remove it in the end."""
    state.mkdir(parents=True)
    state.chmod(0o777)
    with namespace(kubectl, name) as inside:
        sources = [Path(str(job.__file__)) for job in (descent, gang_descent)]
        jobs = {source.name: source.read_text() for source in sources}
        try:
            inside.create([_object("v1", "ConfigMap", JOBS) | {"data": jobs}, *_volume(name, state), *_account(name)])
            yield inside
        finally:
            inside("delete", "persistentvolumeclaim", CLAIM, "--wait=false", "--ignore-not-found")
            for kind in ("persistentvolume", *sorted(_OF_THE_CLUSTER)):
                kubectl("delete", kind, name, "--wait=false", "--ignore-not-found")


def reader_kubeconfig(inside: Kubectl, path: Path) -> Path:
    """Write a kubeconfig file of somebody who may see a namespace's sweeps as ``specon doctor`` says, and no more.

    That is less than the controller may: it learns of workflows by watching them, and gets none alone.
    """
    inside("create", "serviceaccount", READER)
    for permission in (*READ, Permission("list", "pods")):
        role = f"{READER}-{permission.verb}-{permission.resource}"
        inside("create", "role", role, f"--verb={permission.verb}", f"--resource={permission.whole_name}")
        inside("create", "rolebinding", role, f"--role={role}", f"--serviceaccount={inside.namespace}:{READER}")
    return controller_kubeconfig(inside, path, READER)


def controller_kubeconfig(inside: Kubectl, path: Path, account: str = ACCOUNT) -> Path:
    """Write a kubeconfig file with which one acts as a service account, the controller's, and nothing else."""
    token = inside("create", "token", account, "--duration=3h").strip()
    found = yaml.safe_load(inside.kubeconfig.read_text())
    cluster = found["clusters"][0]["cluster"]
    if "certificate-authority" in cluster:
        authority = Path(cluster.pop("certificate-authority")).read_bytes()
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": "sweeps", "context": {"cluster": "cluster", "user": account}}],
        "current-context": "sweeps",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def _object(version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def _volume(name: str, state: Path) -> list[dict[str, Any]]:
    """A volume that every node mounts: a folder of the machine that all nodes share."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    volume = {
        "capacity": size,
        "accessModes": modes,
        "storageClassName": "",
        "hostPath": {"path": str(state), "type": "Directory"},
        "claimRef": {"namespace": name, "name": CLAIM},
    }
    claim = {"accessModes": modes, "storageClassName": "", "volumeName": name, "resources": {"requests": size}}
    return [
        _object("v1", "PersistentVolume", name) | {"spec": volume},
        _object("v1", "PersistentVolumeClaim", CLAIM) | {"spec": claim},
    ]


def _account(name: str) -> list[dict[str, Any]]:
    """The controller's account with the permissions of the manifests; those of the cluster get a name of their own."""
    made = []
    for one in copy.deepcopy(render(MANIFESTS / "overlays/namespaced")):
        kinds = ("ServiceAccount", "Role", "RoleBinding", *_OF_THE_CLUSTER)
        if one["kind"] not in kinds or not one["metadata"]["name"].startswith(ACCOUNT):
            continue
        metadata = one["metadata"]
        if one["kind"] in _OF_THE_CLUSTER:
            metadata["name"] = name
            one.get("roleRef", {})["name"] = name
        else:
            metadata["namespace"] = name
        for subject in one.get("subjects", ()):
            subject["namespace"] = name
        made.append(one)
    return made
