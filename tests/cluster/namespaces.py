"""A namespace for a test: made with what workflows need in it, taken away with all in it."""

import contextlib
from collections.abc import Iterator

from tests.cluster.argo_install import executor_permissions
from tests.cluster.kubectl import Kubectl
from tests.cluster.processes import wait_until


@contextlib.contextmanager
def namespace(kubectl: Kubectl, name: str) -> Iterator[Kubectl]:
    """Make a namespace in which workflows can run, and remove it in the end; what kubectl is given stays in it."""
    kubectl("create", "namespace", name)
    inside = Kubectl(kubectl.kubeconfig, name)
    try:
        wait_until(lambda: bool(inside.items("serviceaccounts")), f"namespace {name} has its service account", 20)
        inside.create(executor_permissions(name))
        yield inside
    finally:
        _remove(inside)


def _remove(kubectl: Kubectl) -> None:
    # Workflows first: their controller would make the pods again. Pods get a second, not the half minute that is usual.
    kubectl("delete", "workflows.argoproj.io", "--all", "--wait=false")
    kubectl("delete", "pods", "--all", "--grace-period=1", "--wait=false")
    kubectl("delete", "namespace", kubectl.namespace, "--timeout=90s")
