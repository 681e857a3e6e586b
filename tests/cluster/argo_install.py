"""Argo Workflows in a cluster: its definitions, its permissions, its controller and its server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tests.cluster.building import argo_manifests, binary
from tests.cluster.certificates import Authority
from tests.cluster.layout import API_SERVER, Layout
from tests.cluster.machine import Machine
from tests.cluster.versions import ARGOEXEC_IMAGE

NAMESPACE: Final = "argo"
CONTROLLER_ACCOUNT: Final = "argo"
SERVER_ACCOUNT: Final = "argo-server"
SERVER_PORT: Final = 2746
EXECUTOR_ROLE: Final = "executor"
# Argo looks at a workflow at most this often. Its default of 10 s would be most of the time that a move takes.
REQUEUE_TIME: Final = "1s"


def definitions() -> list[dict[str, Any]]:
    """The custom resources, and the permissions of controller and server, as Argo publishes them."""
    folder = argo_manifests()
    # Argo 3.6 has what later ones have in the second.
    installs = (folder / "cluster-install-no-crds", folder / "cluster-install")
    install = next(place for place in installs if (place / "workflow-controller-rbac").is_dir())
    files = [
        *sorted((folder / "base/crds/minimal").glob("argoproj.io_*.yaml")),
        *sorted(install.glob("*/*role*.yaml")),
        *sorted(install.glob("*/*binding*.yaml")),
        *sorted((folder / "base").glob("*/*-sa.yaml")),
    ]
    found = {}
    for file in files:
        for document in yaml.safe_load_all(file.read_text()):
            found[document["kind"], document["metadata"]["name"]] = _in_namespace(document)
    return [_namespace(), *found.values(), _settings()]


def _in_namespace(document: dict[str, Any]) -> dict[str, Any]:
    if document["kind"] in {"Role", "RoleBinding", "ServiceAccount"}:
        document["metadata"]["namespace"] = NAMESPACE
    for subject in document.get("subjects", ()):
        subject["namespace"] = NAMESPACE
    return document


def _namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def _settings() -> dict[str, Any]:
    """The controller's settings: executors have a CPU request, since pods without one start slowly on a busy node."""
    executor = {"resources": {"requests": {"cpu": "5m", "memory": "16Mi"}}, "imagePullPolicy": "IfNotPresent"}
    data = {"executor": yaml.safe_dump(executor)}
    metadata = {"name": "workflow-controller-configmap", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def executor_permissions(namespace: str) -> list[dict[str, Any]]:
    """What lets the pods of workflows in a namespace report their results, with its default service account."""
    role = yaml.safe_load((argo_manifests() / "quick-start/base/executor/emissary/executor-role.yaml").read_text())
    role["metadata"]["namespace"] = namespace
    metadata = {"name": EXECUTOR_ROLE, "namespace": namespace}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": EXECUTOR_ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }
    return [role, binding]


def issue_certificates(authority: Authority) -> None:
    """Write the kubeconfig files with which controller and server act as their service accounts."""
    for account in (CONTROLLER_ACCOUNT, SERVER_ACCOUNT):
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
        authority.kubeconfig(API_SERVER, account, f"system:serviceaccount:{NAMESPACE}:{account}", groups)


@dataclass(frozen=True)
class Argo:
    """The processes of Argo, in the control plane's machine."""

    machine: Machine
    layout: Layout

    def start(self) -> None:
        """Start the workflow-controller and the Argo Server."""
        self.start_controller()
        self.start_server()

    def start_controller(self) -> None:
        """Start the workflow-controller, for all namespaces."""
        flags = ["--namespace", NAMESPACE, "--executor-image", ARGOEXEC_IMAGE]
        self._start(
            "workflow-controller",
            flags,
            CONTROLLER_ACCOUNT,
            LEADER_ELECTION_DISABLE="true",
            # Once a watch has ended, as it does with the API server, it would read the closed channel without end: a
            # core of CPU, and 60 MB of log a second (argoproj/argo-workflows#11657). No test changes its configuration.
            WATCH_CONTROLLER_SEMAPHORE_CONFIGMAPS="false",
            DEFAULT_REQUEUE_TIME=REQUEUE_TIME,
        )

    def start_server(self) -> None:
        """Start the Argo Server; callers bring their own token."""
        flags = ["server", "--namespace", NAMESPACE, "--auth-mode", "client", "--secure=false", f"--port={SERVER_PORT}"]
        self._start("argo", flags, SERVER_ACCOUNT)

    def _start(self, program: str, flags: Sequence[str], account: str, **settings: str) -> None:
        # By the environment: the server reads the flag only for itself, and not for those who call it.
        settings["KUBECONFIG"] = str(self.layout.certificates / f"{account}.kubeconfig")
        settings["HOME"] = str(self.machine.folder)
        self.machine.start(program, [binary(program), *flags], GOMAXPROCS="2", **settings)
