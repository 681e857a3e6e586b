"""The controller by the real helm: installed in a clean namespace, where a sweep runs, changed by a value, removed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from hera_specon.cli import main
from tests.cluster import shell_sweep
from tests.cluster.any_cluster import AnyCluster
from tests.cluster.commands import run
from tests.cluster.helm_namespace import RELEASE, helm_namespace
from tests.cluster.installation import MANIFESTS, forwarded
from tests.cluster.kubectl import JsonObject, Kubectl
from tests.cluster.processes import wait_until

# Helm may have to be built first.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

KINDS: Final = "deployments,services,configmaps,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets"
IN_CLUSTER: Final = "clusterroles,clusterrolebindings"
OURS: Final = f"--selector=app.kubernetes.io/instance={RELEASE},app.kubernetes.io/managed-by=Helm"
VALUES: Final[JsonObject] = {
    "image": {"repository": "hera-specon/controller"},  # the image that the nodes have
    "mlflow": {"server": {"enabled": True}},
    "settings": {"SPECON_CONTROLLER_INTERVAL": 1},
}


@dataclass(frozen=True)
class Helm:
    """The real helm on one namespace of a cluster."""

    program: str
    kubectl: Kubectl
    folder: Path

    def __call__(self, *arguments: str | Path, **values: Any) -> str:  # noqa: ANN401 - values are any JSON
        """Run helm with VALUES and more of them, and return what it printed."""
        file = self.folder / "values.json"
        file.write_text(json.dumps(VALUES | values))
        given = ("--values", file) if arguments[0] in {"install", "upgrade"} else ()
        access = (f"--kubeconfig={self.kubectl.kubeconfig}", f"--namespace={self.kubectl.namespace}")
        return run(self.program, *arguments, *given, *access, seconds=400)

    def objects(self) -> set[str]:
        """Return kind and name of all that the release has, but for the volume that it would leave."""
        inside = self.kubectl("get", KINDS, OURS, "--output=name").split()
        names = self.kubectl("get", IN_CLUSTER, OURS, "--output=name").split()
        return {*inside, *(name for name in names if name.endswith(f"-{self.kubectl.namespace}"))}


@pytest.fixture
def helm(cluster: AnyCluster, tmp_path: Path) -> Iterator[Helm]:
    with helm_namespace(cluster, tmp_path) as (program, kubectl):
        yield Helm(program, kubectl, tmp_path)


def settings(helm: Helm) -> dict[str, str]:
    data: dict[str, str] = helm.kubectl.get("configmap", "specon-controller-settings")["data"]
    return data


def controllers(helm: Helm) -> set[str]:
    """Return the identities of the controller's pods that are ready."""
    return {
        pod["metadata"]["uid"]
        for pod in helm.kubectl.items("pods", "--selector=app.kubernetes.io/name=specon-controller")
        for condition in pod["status"].get("conditions", ())
        if condition["type"] == "Ready" and condition["status"] == "True" and "deletionTimestamp" not in pod["metadata"]
    }


def test_helm_installs_changes_and_removes_a_controller_that_steers(helm: Helm, cluster: AnyCluster) -> None:
    told = helm("install", RELEASE, MANIFESTS, "--create-namespace", "--wait", "--timeout=5m")
    # Nothing of the namespace was there before, so all that follows is what the chart brought.
    assert f"specon submit FILE -n {helm.kubectl.namespace}" in told
    assert len(controllers(helm)) == 2
    assert settings(helm)["SPECON_CONTROLLER_INTERVAL"] == "1"

    with forwarded(helm.kubectl, "mlflow") as uri:
        access = ["-n", helm.kubectl.namespace, "--kubeconfig", str(cluster.kubeconfig)]
        submitted = CliRunner().invoke(main, ["submit", shell_sweep.__file__, "--wait", *access])
        assert submitted.exit_code == 0, submitted.stderr
        workflow = submitted.stdout.split()[2]
        status = CliRunner().invoke(main, ["status", workflow, "--json", "--mlflow-tracking-uri", uri, *access])
        assert status.exit_code == 0, status.stderr
        assert json.loads(status.stdout)["phase"] == "Succeeded"

    before, acting = controllers(helm), helm.objects()
    helm("upgrade", RELEASE, MANIFESTS, "--wait", "--timeout=5m", recommend=True)
    assert settings(helm)["SPECON_CONTROLLER_RECOMMEND"] == "true"
    assert {one.split("/")[1] for one in acting - helm.objects()} == {"specon-controller-act"}
    wait_until(lambda: len(controllers(helm) - before) == 2, "two new replicas are ready", 60)

    helm("uninstall", RELEASE, "--wait", "--timeout=2m")
    assert helm.objects() == set()
    assert [one["metadata"]["name"] for one in helm.kubectl.items("persistentvolumeclaims")] == ["mlflow"]


def test_releases_in_two_namespaces_stand_beside_each_other(helm: Helm, cluster: AnyCluster) -> None:
    other = f"{helm.kubectl.namespace}-2"
    elsewhere = Helm(helm.program, Kubectl(cluster.kubeconfig, other), helm.folder)
    # Nothing answers at the address: only the objects count here, so no replica has to be ready.
    unreachable = {"mlflow": {"trackingUri": "http://mlflow.nowhere:5000"}}
    try:
        for one in (helm, elsewhere):
            one("install", RELEASE, MANIFESTS, "--create-namespace", **unreachable)
        assert len(helm.objects()) == len(elsewhere.objects())
        elsewhere("uninstall", RELEASE)
        assert any("clusterrolebinding" in name for name in helm.objects())
    finally:
        cluster.kubectl("delete", "namespace", other, "--ignore-not-found", "--timeout=120s")
