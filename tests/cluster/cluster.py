"""A Kubernetes cluster with Argo Workflows: one control plane and several nodes, all on this machine."""

import shutil
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.cluster import argo_install, building, containerd, control_plane, image_store, kubelet, network, node_cgroups
from tests.cluster.argo_install import Argo
from tests.cluster.certificates import Authority
from tests.cluster.commands import ClusterError
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubectl import Kubectl
from tests.cluster.layout import CONTROL_ADDRESS, Layout, NodeSpec, default_layout
from tests.cluster.machine import Machine
from tests.cluster.processes import wait_until
from tests.cluster.small_images import argoexec_archive, pause_archive, shell_archive

CONTROL: Final = "control"
# Two nodes on the last core and one on the first: the control plane and MLflow keep more than a core.
DEFAULT_NODES: Final = (
    NodeSpec("node-1", 1, cores=0.4, cpu=1),
    NodeSpec("node-2", 2, cores=0.4, cpu=1),
    NodeSpec("node-3", 3, cores=0.4, cpu=0),
)


@dataclass(frozen=True)
class Cluster:
    """A cluster, running or not.

    Attributes:
        nodes: what each node is given.
        layout: where its files are.
        tell: is told each step as it begins.
    """

    nodes: tuple[NodeSpec, ...] = DEFAULT_NODES
    layout: Layout = field(default_factory=default_layout)
    tell: Callable[[str], None] = print

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        return self.layout.kubeconfig

    @property
    def kubectl(self) -> Kubectl:
        """kubectl as administrator."""
        return Kubectl(self.kubeconfig)

    @property
    def control_plane(self) -> ControlPlane:
        """The control plane's components."""
        return ControlPlane(self.machine(CONTROL), self.layout)

    @property
    def argo(self) -> Argo:
        """Argo's processes."""
        return Argo(self.machine(CONTROL), self.layout)

    def machine(self, name: str) -> Machine:
        """The machine of a node, or of the control plane."""
        cpu = next((node.cpu for node in self.nodes if node.name == name), None)
        return Machine(name, self.layout.machine(name), self.layout.logs, cpu)

    def node(self, name: str) -> NodeSpec:
        """What a node is given."""
        for node in self.nodes:
            if node.name == name:
                return node
        message = f"no node is named {name}; there are {', '.join(node.name for node in self.nodes)}"
        raise ClusterError(message)

    @property
    def is_up(self) -> bool:
        """Whether its API server is ready."""
        return self.machine(CONTROL).is_running and self.control_plane.is_ready()

    def up(self, archives: Sequence[Path] = ()) -> None:
        """Bring it up, with the images of these archives on every node; what an earlier one left is removed first."""
        self.down()
        building.build_all(self.tell)
        store = image_store.prepare([pause_archive(), argoexec_archive(), shell_archive(), *archives], self.tell)
        self.tell("starting the control plane")
        self._start_control_plane()
        self.tell("starting the nodes")
        with ThreadPoolExecutor() as threads:
            for done in [threads.submit(self._start_node, node, store) for node in self.nodes]:
                done.result()
            self.tell("installing Argo Workflows")
            self.argo.install(self.kubectl)
        self.argo.start()
        self.tell("waiting for the nodes")
        wait_until(self.are_nodes_ready, "all nodes are ready", 60, interval=0.3)

    def _start_control_plane(self) -> None:
        authority = Authority(self.layout.certificates)
        control_plane.issue_certificates(authority, self.layout)
        argo_install.issue_certificates(authority)
        for node in self.nodes:
            kubelet.issue_certificates(authority, node)
            node_cgroups.make(node)
        network.add_bridge(self.nodes)
        machine = self.machine(CONTROL)
        machine.boot()
        network.connect(machine, CONTROL_ADDRESS, self.nodes)
        self.control_plane.start()

    def _start_node(self, node: NodeSpec, store: Path) -> None:
        machine = self.machine(node.name)
        image_store.clone(store, machine.folder / image_store.STORE)
        self._boot_node(node)

    def _boot_node(self, node: NodeSpec) -> None:
        machine = self.machine(node.name)
        machine.boot()
        network.connect(machine, node.address, self.nodes)
        containerd.start(machine, node)
        kubelet.start(machine, node, self.layout)
        kubelet.start_proxy(machine, node, self.layout)

    def ready_nodes(self) -> set[str]:
        """The names of the nodes that Kubernetes takes for ready."""
        return {
            node["metadata"]["name"]
            for node in self.kubectl.get("nodes")["items"]
            for condition in node["status"].get("conditions", ())
            if condition["type"] == "Ready" and condition["status"] == "True"
        }

    def are_nodes_ready(self) -> bool:
        """Whether every node is ready."""
        return self.ready_nodes() >= {node.name for node in self.nodes}

    def down(self) -> None:
        """Take it down, or what is left of it: processes, mounts, cgroups, network devices, routes and files."""
        for folder in sorted(self.layout.machine("x").parent.glob("*")):
            self.machine(folder.name).lose()
        network.remove_bridge()
        node_cgroups.remove()
        if self.layout.root.exists():
            shutil.rmtree(self.layout.root)

    def lose_node(self, name: str) -> None:
        """End a node with all on it at once, like a power cut."""
        self.machine(self.node(name).name).lose()
        node_cgroups.remove_below(self.node(name))

    def return_node(self, name: str) -> None:
        """Start a lost node again, with the disk that it had."""
        self._boot_node(self.node(name))

    def kill_kubelet(self, name: str) -> None:
        """End a node's kubelet only; its containers run on."""
        self.machine(name).kill("kubelet")

    def start_kubelet(self, name: str) -> None:
        """Start a node's kubelet again."""
        kubelet.start(self.machine(name), self.node(name), self.layout)

    def restart_apiserver(self) -> None:
        """Kill the API server, start it again, and wait until it is ready."""
        self.machine(CONTROL).kill("kube-apiserver")
        self.control_plane.start_api_server()
        self.control_plane.wait_until_ready()

    def stop_workflow_controller(self) -> None:
        """Kill Argo's controller."""
        self.machine(CONTROL).kill("workflow-controller", signal.SIGKILL)

    def restart_workflow_controller(self) -> None:
        """Kill Argo's controller and start it again."""
        self.stop_workflow_controller()
        self.argo.start_controller()

    def import_image(self, archive: Path) -> None:
        """Import an image archive into every node that runs."""
        for node in self.nodes:
            if self.machine(node.name).is_running:
                containerd.import_archive(self.machine(node.name), archive)
