"""A Kubernetes cluster with Argo Workflows: one control plane and several nodes, all on this machine."""

import contextlib
import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tests.cluster import (
    argo_install,
    building,
    containerd,
    control_plane,
    dns,
    image_store,
    kubelet,
    network,
    node_cgroups,
)
from tests.cluster.argo_install import Argo
from tests.cluster.certificates import Authority
from tests.cluster.commands import ClusterError
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubectl import Kubectl
from tests.cluster.kubelet import PLAIN, Registration
from tests.cluster.layout import CONTROL_ADDRESS, Layout, NodeSpec, cache_folder, default_layout
from tests.cluster.machine import Machine
from tests.cluster.processes import wait_until
from tests.cluster.small_images import own_archives

CONTROL: Final = "control"
# Two nodes on one core and one on the other: the control plane and MLflow keep the rest.
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

    @property
    def node_names(self) -> list[str]:
        """The names of the nodes."""
        return [node.name for node in self.nodes]

    @property
    def machines(self) -> list[Machine]:
        """The control plane's machine and the nodes'."""
        return [self.machine(name) for name in (CONTROL, *self.node_names)]

    def machine(self, name: str) -> Machine:
        """The machine of a node, or of the control plane."""
        cpu = next((node.cpu for node in self.nodes if node.name == name), None)
        return Machine(name, self.layout.machine(name), self.layout.logs, cpu)

    def node(self, name: str) -> NodeSpec:
        """What a node is given.

        Raises:
            ClusterError: there is none of this name.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        message = f"no node is named {name}; there are {', '.join(self.node_names)}"
        raise ClusterError(message)

    @property
    def is_up(self) -> bool:
        """Whether its API server is ready."""
        return self.machine(CONTROL).is_running and self.control_plane.is_ready()

    def up(self, archives: Sequence[Path] = ()) -> None:
        """Bring it up, with the images of these archives on every node; what an earlier one left is removed first.

        Raises:
            ClusterError: one is up already, or something did not work.
        """
        with alone():
            if running_cluster() is not None:
                message = "a cluster is up already: take it down first, or use it"
                raise ClusterError(message)
            self._remove()
            self._build(archives)

    def _build(self, archives: Sequence[Path]) -> None:
        network.check_addresses_are_free()
        building.build_all(self.tell)
        store = image_store.prepare([*own_archives(), *archives], self.tell)
        self.layout.root.mkdir(parents=True, mode=0o700)
        self.layout.nodes.write_text(json.dumps([asdict(node) for node in self.nodes]))
        self.tell("starting the control plane")
        self._start_control_plane()
        self.tell("starting the nodes and Argo Workflows")
        with ThreadPoolExecutor() as threads:
            starting = [threads.submit(self._start_node, node, store) for node in self.nodes]
            self.kubectl.create([*dns.definitions(), *argo_install.definitions()])
            self.argo.start()
            for done in starting:
                done.result()
        self.tell("waiting for the nodes")
        wait_until(self.are_nodes_ready, f"all nodes are ready (see {self.layout.logs})", 60, interval=0.3)

    def _start_control_plane(self) -> None:
        self._issue_certificates()
        network.add_bridge(self.nodes)
        machine = self.machine(CONTROL)
        machine.boot()
        network.connect(machine, CONTROL_ADDRESS, self.nodes)
        self.control_plane.start()
        dns.start(machine, self.layout)

    def _issue_certificates(self) -> None:
        authority = Authority(self.layout.certificates)
        control_plane.issue_certificates(authority, self.layout)
        argo_install.issue_certificates(authority)
        dns.issue_certificates(authority)
        for node in self.nodes:
            kubelet.issue_certificates(authority, node)

    def _start_node(self, node: NodeSpec, store: Path, registration: Registration = PLAIN) -> None:
        image_store.share(store, self.machine(node.name))
        node_cgroups.make(node)
        self._boot_node(node, registration)

    def _boot_node(self, node: NodeSpec, registration: Registration = PLAIN) -> None:
        machine = self.machine(node.name)
        machine.boot()
        network.connect(machine, node.address, self.nodes)
        containerd.start(machine, node)
        kubelet.start(machine, node, self.layout, registration)
        kubelet.start_proxy(machine, node, self.layout)

    def are_nodes_ready(self) -> bool:
        """Whether every node is ready."""
        return self.kubectl.ready_nodes() >= set(self.node_names)

    def down(self) -> None:
        """Take it down, or what is left of it: processes, mounts, cgroups, network devices, routes and files."""
        with alone():
            self._remove()

    def _remove(self) -> None:
        for folder in sorted(self.layout.machines.glob("*")):
            self.machine(folder.name).lose()
        image_store.abandon()
        network.remove_bridge()
        node_cgroups.remove()
        if self.layout.root.exists():
            shutil.rmtree(self.layout.root)

    def show_folder(self, folder: Path) -> None:
        """Let pods that mount a folder look into it: the nodes have the machine's file system."""
        folder.chmod(0o755)

    def lose_node(self, name: str) -> None:
        """End a node with all on it at once, like a power cut."""
        node = self.node(name)
        self.machine(name).lose()
        network.disconnect(node.address)
        node_cgroups.remove(node.cgroup)

    def return_node(self, name: str) -> None:
        """Start a lost node again, with the disk that it had."""
        node = self.node(name)
        node_cgroups.make(node)
        self._boot_node(node)

    def renew_node(self, name: str, registration: Registration = PLAIN) -> None:
        """Start a lost node as a new machine: an empty disk with the cluster's images, and its own registration."""
        node = self.node(name)
        shutil.rmtree(self.machine(name).folder, ignore_errors=True)
        self._start_node(node, image_store.location(), registration)

    def kill_kubelet(self, name: str) -> None:
        """End a node's kubelet only; its containers run on."""
        self.machine(self.node(name).name).kill("kubelet")

    def start_kubelet(self, name: str) -> None:
        """Start a node's kubelet again."""
        node = self.node(name)
        kubelet.start(self.machine(name), node, self.layout)

    def restart_apiserver(self) -> None:
        """Kill the API server, start it again, and wait until it is ready."""
        self.machine(CONTROL).kill("kube-apiserver")
        self.control_plane.start_api_server()
        self.control_plane.wait_until_ready()

    def restart_workflow_controller(self) -> None:
        """Kill Argo's controller and start it again."""
        self.machine(CONTROL).kill("workflow-controller")
        self.argo.start_controller()

    def cpu_shares(self, pod_uid: str, container_id: str = "") -> int:
        """The weight of a pod, or of one container of it, as the kernel has it: 1024 for a core."""
        return node_cgroups.cpu_shares(pod_uid, container_id)

    def cpu_seconds(self, pod_uid: str) -> float:
        """The CPU time that a pod has used, read from the kernel."""
        return node_cgroups.cpu_seconds(pod_uid)

    def import_image(self, archive: Path) -> None:
        """Import an image archive into every node that runs and has not got it yet."""
        machines = [self.machine(name) for name in self.node_names]
        lacking = [
            machine for machine in machines if machine.is_running and not image_store.holds(machine.folder, archive)
        ]
        with ThreadPoolExecutor() as threads:
            for done in [threads.submit(image_store.add, machine, archive) for machine in lacking]:
                done.result()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Wait until nobody else on this machine brings a cluster up or down."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def running_cluster(tell: Callable[[str], None] = print) -> Cluster | None:
    """The cluster that is up on this machine, also where another process brought it up."""
    layout = default_layout()
    if not layout.nodes.exists():
        return None
    nodes = tuple(NodeSpec(**node) for node in json.loads(layout.nodes.read_text()))
    cluster = Cluster(nodes, layout, tell)
    return cluster if cluster.is_up else None
