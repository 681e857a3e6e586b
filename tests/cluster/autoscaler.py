"""Karpenter over a fleet of the test cluster's nodes, as an owner of a cluster installs and sets it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.cluster import building
from tests.cluster.cluster import CONTROL, Cluster
from tests.cluster.commands import ClusterError
from tests.cluster.fleet import Fleet, served
from tests.cluster.other_modules import published
from tests.cluster.processes import wait_until
from tests.cluster.sweeps.ports import free_ports

MODULE: Final = Path(__file__).parent / "karpenter"
CLASS: Final = "fleet"
POOL: Final = "sweeps"
DISRUPTED: Final = "karpenter.sh/disrupted"
_NAMESPACE: Final = "karpenter"
_GONE_WITHIN_S: Final = 120.0
_FINALIZER_OFF: Final = '{"metadata":{"finalizers":null}}'


@dataclass(frozen=True)
class Autoscaler:
    """Karpenter that runs, with one pool of nodes."""

    cluster: Cluster
    fleet: Fleet

    def set_pool(self, *, consolidate: str = "WhenEmpty", after: str = "5s", expire: str = "Never") -> None:
        """Say when nodes of the pool go: ``consolidate`` is a policy of Karpenter's, the others are its durations."""
        self._apply(_pool(consolidate, after, expire))

    def set_image(self, image: str) -> None:
        """Say what machines are started with from now on: those with another image have drifted."""
        self._apply(_node_class(image))

    def _apply(self, definition: dict[str, Any]) -> None:
        self.cluster.kubectl("apply", "--server-side", "--filename", "-", text_input=json.dumps(definition))

    def claims(self) -> list[str]:
        """The names of the nodes that Karpenter has asked for and not given back."""
        return [claim["metadata"]["name"] for claim in self.cluster.kubectl.items("nodeclaims")]

    def is_empty(self) -> bool:
        """Whether there is no machine and no node."""
        return not self.fleet.here() and not self.claims() and not self.cluster.kubectl.items("nodes")

    def log(self) -> str:
        """The end of what Karpenter wrote."""
        return self.cluster.machine(CONTROL).log("karpenter").read_text()[-6_000:]


@contextmanager
def autoscaled(cluster: Cluster) -> Iterator[Autoscaler]:
    """Take all nodes away and leave it to Karpenter to start them; in the end all are back without it."""
    building.build_program(building.KARPENTER_PROGRAM, cluster.tell)
    fleet, port = Fleet(cluster), free_ports(1)[0]
    made = Autoscaler(cluster, fleet)
    _take_nodes_away(cluster)
    try:
        with served(fleet, port) as address:
            _install(made)
            _start(cluster, address)
            try:
                yield made
            finally:
                _remove(made)
    finally:
        _bring_nodes_back(cluster, fleet)


def _take_nodes_away(cluster: Cluster) -> None:
    for name in cluster.node_names:
        cluster.lose_node(name)
    cluster.kubectl("delete", "nodes", "--all", "--timeout=60s")


def _install(made: Autoscaler) -> None:
    kubectl = made.cluster.kubectl
    definitions = sorted(Path(published("sigs.k8s.io/karpenter", "", MODULE)["Dir"], "pkg/apis/crds").glob("*.yaml"))
    for file in (*definitions, MODULE / "nodeclass.yaml"):
        kubectl("apply", "--server-side", "--filename", file)
    kubectl("wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=30s")
    kubectl("create", "namespace", _NAMESPACE)
    made.set_image("1")
    made.set_pool()


def _start(cluster: Cluster, fleet_address: str) -> None:
    settings = {
        "KUBECONFIG": str(cluster.kubeconfig),
        "FLEET": fleet_address,
        "SYSTEM_NAMESPACE": _NAMESPACE,
        "KARPENTER_SERVICE": _NAMESPACE,
        "DISABLE_LEADER_ELECTION": "true",
        "GOMAXPROCS": "2",
    }
    cluster.machine(CONTROL).start("karpenter", [building.binary("karpenter")], **settings)


def _remove(made: Autoscaler) -> None:
    """Give all nodes back as an owner does that removes the pool; then take away Karpenter and its definitions."""
    kubectl = made.cluster.kubectl
    try:
        kubectl("delete", "nodepools,nodeclaims", "--all", "--wait=false")
        wait_until(made.is_empty, f"Karpenter has given its nodes back:\n{made.log()}", _GONE_WITHIN_S, interval=1)
    finally:
        made.cluster.machine(CONTROL).kill("karpenter")
        for kind in ("nodeclaims", "nodepools", "nodes"):
            for one in kubectl.items(kind):
                kubectl("patch", kind, one["metadata"]["name"], "--type=merge", "--patch", _FINALIZER_OFF)
        kubectl("delete", "nodes", "--all", "--wait=false")
        kubectl("delete", "--wait=false", "customresourcedefinitions", *_definitions(made))
        kubectl("delete", "namespace", _NAMESPACE, "--wait=false")


def _definitions(made: Autoscaler) -> list[str]:
    found = [one["metadata"]["name"] for one in made.cluster.kubectl.items("customresourcedefinitions")]
    ours = ("karpenter.sh", "autoscaling.x-k8s.io", "tests.hera-specon.io")
    return [name for name in found if name.partition(".")[2] in ours]


def _bring_nodes_back(cluster: Cluster, fleet: Fleet) -> None:
    for machine in fleet.here():
        fleet.end(machine.id)
    for name in cluster.node_names:
        cluster.renew_node(name)
    try:
        wait_until(cluster.are_nodes_ready, "all nodes are back without an autoscaler", 90, interval=0.5)
    except ClusterError as error:
        cluster.tell(str(error))


def _node_class(image: str) -> dict[str, Any]:
    return {
        "apiVersion": "tests.hera-specon.io/v1alpha1",
        "kind": "FleetNodeClass",
        "metadata": {"name": CLASS},
        "spec": {"image": image},
    }


def _pool(consolidate: str, after: str, expire: str) -> dict[str, Any]:
    reference = {"group": "tests.hera-specon.io", "kind": "FleetNodeClass", "name": CLASS}
    on_demand = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": POOL},
        "spec": {
            "template": {"spec": {"nodeClassRef": reference, "requirements": [on_demand], "expireAfter": expire}},
            "disruption": {
                "consolidationPolicy": consolidate,
                "consolidateAfter": after,
                "budgets": [{"nodes": "100%"}],
            },
        },
    }
