"""A cluster of someone else's, used for the same tests: what only a cluster of our own allows is skipped by name."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Never

import pytest

from tests.cluster.commands import ClusterError
from tests.cluster.images.archives import IMAGES
from tests.cluster.kubectl import Kubectl
from tests.cluster.versions import SHELL_IMAGE

LEAST_VERSION: Final = (1, 35)
_WORKFLOWS: Final = "workflows.argoproj.io"
_MOST_IMAGES_TOLD: Final = 50
"""A kubelet reports no more than this many images; more may be there."""


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
        return [node["metadata"]["name"] for node in self._nodes()]

    def _nodes(self) -> list[Mapping[str, Any]]:
        return [
            node
            for node in self.kubectl.items("nodes")
            if not any(taint["effect"] == "NoSchedule" for taint in node["spec"].get("taints", ()))
        ]

    def shortcomings(self) -> list[str]:
        """Return what the how-to says that the cluster must have and it has not."""
        try:
            return [*self._old_versions(), *self._argo_missing(), *self._images_missing()]
        except ClusterError as error:
            return [f"it does not answer: {error}"]

    def _old_versions(self) -> Iterator[str]:
        server = json.loads(self.kubectl("get", "--raw", "/version"))
        version = int(server["major"]), int(server["minor"].rstrip("+"))
        if version < LEAST_VERSION:
            yield f"Kubernetes is {server['gitVersion']}: pods are resized in place from {_dotted(LEAST_VERSION)} on"

    def _argo_missing(self) -> Iterator[str]:
        if not self.kubectl("get", "customresourcedefinitions", "--output=name", "--ignore-not-found", _WORKFLOWS):
            yield f"Argo Workflows is not installed: there is no {_WORKFLOWS}"

    def _images_missing(self) -> Iterator[str]:
        wanted = (SHELL_IMAGE, *(image.full_name for image in IMAGES))
        for node in self._nodes():
            told = node["status"].get("images", ())
            held = {name for image in told for name in image["names"]}
            missing = [image for image in wanted if image not in held and len(told) < _MOST_IMAGES_TOLD]
            if missing:
                yield f"node {node['metadata']['name']} lacks {', '.join(missing)}: load them into it"

    def import_image(self, archive: Path) -> None:
        """Do nothing: the person who gave the cluster has loaded the images."""

    def show_folder(self, folder: Path) -> None:
        _skip("show_folder", str(folder))

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


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _skip(*what: str) -> Never:
    pytest.skip(f"{' '.join(what).strip()}: can't be done in a cluster given by KUBECONFIG")
