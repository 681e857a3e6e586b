"""A namespace that helm is to make, and to which nothing of a release belongs afterwards."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.any_cluster import AnyCluster
from tests.cluster.commands import ClusterError, run
from tests.cluster.installation import host_volume
from tests.cluster.kubectl import Kubectl
from tests.manifests.helm import find_helm

RELEASE: Final = "specon"


@contextmanager
def helm_namespace(cluster: AnyCluster, folder: Path) -> Iterator[tuple[str, Kubectl]]:
    """Yield helm's path, and kubectl in a namespace that is not there yet; whatever is installed there goes in the end.

    MLflow gets a volume in ``folder``, as the cluster gives none by itself. Skips the test where there is no helm.
    """
    try:
        helm = find_helm()
    except ClusterError as error:
        pytest.skip(f"NOTHING WAS INSTALLED BY HELM: there is none, and it cannot be built: {error}")
    cluster.show_folder(folder)
    inside = Kubectl(cluster.kubeconfig, f"helm-{secrets.token_hex(4)}")
    volume = host_volume("mlflow", inside.namespace, folder / "mlflow", "ReadWriteOnce")
    name = volume["metadata"]["name"]
    access = (f"--kubeconfig={inside.kubeconfig}", f"--namespace={inside.namespace}")
    cluster.kubectl.create([volume])
    with ExitStack() as last_first:
        remove, gone = last_first.callback, "--ignore-not-found"
        remove(cluster.kubectl, "delete", "persistentvolume", name, gone, "--wait=false")
        remove(cluster.kubectl, "delete", "namespace", inside.namespace, gone, "--timeout=120s")
        remove(run, helm, "uninstall", RELEASE, gone, *access)
        yield helm, inside
