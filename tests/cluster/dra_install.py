"""Devices for ResourceClaims on nodes of the test cluster, by Kubernetes' example driver: they have no hardware."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from controllers.worlds.argo.calls.api import DEVICE_CLASSES, RESOURCE_SLICES, KubeApi
from controllers.worlds.argo.calls.untrusted import mappings, text
from tests.cluster.building import DRA_PROGRAM, binary, build_program
from tests.cluster.cluster import Cluster
from tests.cluster.kubectl import JsonObject, Kubectl
from tests.cluster.processes import wait_until

DRIVER: Final = "gpu.example.com"
CLASS: Final = DRIVER
TEMPLATE: Final = "one-gpu"
_GROUP: Final = "resource.k8s.io/v1"
_OFFERS_WITHIN_S: Final = 60.0
_COMPONENT: Final = "dra-driver"


@contextmanager
def devices_offered(cluster: Cluster, api: KubeApi, counts: Mapping[str, int]) -> Iterator[None]:
    """Let the driver offer so many devices on each node that ``counts`` names, and remove it in the end."""
    build_program(DRA_PROGRAM, cluster.tell)
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    cluster.kubectl.create([_object("DeviceClass", CLASS) | {"spec": {"selectors": selectors}}])
    try:
        for node, count in counts.items():
            _start(cluster, node, count)
        wait_until(
            lambda: all(offered(api).get(node) == count for node, count in counts.items()),
            f"the driver offers its devices (see {cluster.layout.logs})",
            _OFFERS_WITHIN_S,
            interval=0.3,
        )
        yield
    finally:
        for node in counts:
            cluster.machine(node).kill(_COMPONENT)
        cluster.kubectl("delete", "resourceslices", "--all", "--timeout=60s")
        cluster.kubectl("delete", "deviceclass", CLASS, "--ignore-not-found", "--timeout=60s")


def _start(cluster: Cluster, node: str, count: int) -> None:
    machine = cluster.machine(node)
    folders = (f"/var/lib/kubelet/plugins/{DRIVER}", "/var/lib/kubelet/plugins_registry", "/run/cdi")
    machine.run("mkdir", "-p", *folders)
    settings = [f"--kubeconfig={cluster.kubeconfig}", f"--node-name={node}", "--cdi-root=/run/cdi"]
    settings += [f"--num-devices={count}", f"--driver-name={DRIVER}"]
    machine.start(_COMPONENT, [binary(DRA_PROGRAM.name), *settings], GOMAXPROCS="1")


def offered(api: KubeApi) -> dict[str, int]:
    """Return how many devices are offered on each node."""
    counts: dict[str, int] = {}
    for part in mappings(api.get(RESOURCE_SLICES.path()), "items"):
        node = text(part, "spec", "nodeName")
        counts[node] = counts.get(node, 0) + len(list(mappings(part, "spec", "devices")))
    return counts


def make_template(namespace: Kubectl) -> None:
    """Make the template of a claim for one device, in a namespace."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": CLASS}}]
    spec = {"spec": {"devices": {"requests": requests}}}
    namespace.create([_object("ResourceClaimTemplate", TEMPLATE) | {"spec": spec}])


def _object(kind: str, name: str) -> JsonObject:
    return {"apiVersion": _GROUP, "kind": kind, "metadata": {"name": name}}


def serves_claims(api: KubeApi) -> bool:
    """Whether the API server has resource claims: Kubernetes since 1.34."""
    found = api.get("/apis").get("groups", ())
    versions = {text(one, "groupVersion") for group in found for one in mappings(group, "versions")}
    return DEVICE_CLASSES.group.removeprefix("apis/") in versions
