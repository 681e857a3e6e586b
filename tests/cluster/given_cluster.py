"""A cluster of someone else's, used for the same tests: what only a cluster of our own allows is skipped by name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Never

import pytest

from tests.cluster.kubectl import Kubectl


@dataclass(frozen=True)
class GivenCluster:
    """The cluster that KUBECONFIG names, in the state that the how-to describes: Argo installed, images loaded."""

    kubeconfig: Path

    @property
    def kubectl(self) -> Kubectl:
        """kubectl with the given kubeconfig."""
        return Kubectl(self.kubeconfig)

    @property
    def node_names(self) -> list[str]:
        """The nodes that take ordinary pods."""
        return [
            node["metadata"]["name"]
            for node in self.kubectl.items("nodes")
            if not any(taint["effect"] == "NoSchedule" for taint in node["spec"].get("taints", ()))
        ]

    def import_image(self, archive: Path) -> None:
        """Do nothing: whoever gave the cluster has loaded the images (python -m tests.cluster archives)."""

    def lose_node(self, name: str) -> None:
        _skip("lose_node", name)

    def return_node(self, name: str) -> None:
        _skip("return_node", name)

    def kill_kubelet(self, name: str) -> None:
        _skip("kill_kubelet", name)

    def start_kubelet(self, name: str) -> None:
        _skip("start_kubelet", name)

    def restart_apiserver(self) -> None:
        _skip("restart_apiserver")

    def restart_workflow_controller(self) -> None:
        _skip("restart_workflow_controller")

    def cpu_shares(self, pod_uid: str, container_id: str = "") -> int:
        _skip("cpu_shares", pod_uid, container_id)

    def cpu_seconds(self, pod_uid: str) -> float:
        _skip("cpu_seconds", pod_uid)


def _skip(*what: str) -> Never:
    pytest.skip(f"{' '.join(what).strip()}: can't be done in a cluster given by KUBECONFIG")
