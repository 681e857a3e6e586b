"""What tests may ask of a cluster, whether it is ours or was given."""

from pathlib import Path
from typing import Protocol

from tests.cluster.kubectl import Kubectl


class AnyCluster(Protocol):
    """A cluster with Argo Workflows. What a given cluster can't do skips the test that asks for it, by name."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""

    @property
    def kubectl(self) -> Kubectl:
        """kubectl as administrator."""

    @property
    def node_names(self) -> list[str]:
        """The nodes for ordinary pods."""

    def import_image(self, archive: Path) -> None:
        """Have the image of this archive on every node."""

    def show_folder(self, folder: Path) -> None:
        """Have pods that mount this folder of the machine, or its programs, see what is in them."""

    def lose_node(self, name: str) -> None:
        """End a node with all on it at once, like a power cut."""

    def return_node(self, name: str) -> None:
        """Start a lost node again, with the disk that it had."""

    def kill_kubelet(self, name: str) -> None:
        """End a node's kubelet only; its containers run on."""

    def start_kubelet(self, name: str) -> None:
        """Start a node's kubelet again."""

    def restart_apiserver(self) -> None:
        """Kill the API server, start it again, and wait until it is ready."""

    def restart_workflow_controller(self) -> None:
        """Kill Argo's controller and start it again."""

    def cpu_shares(self, pod_uid: str, container_id: str = "") -> int:
        """The weight of a pod, or of one container of it, as the kernel has it: 1024 for a core."""

    def cpu_seconds(self, pod_uid: str) -> float:
        """The CPU time that a pod has used, as the kernel has it."""
