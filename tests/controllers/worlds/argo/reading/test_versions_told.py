"""Versions as clusters write them, and what they say a kubelet can do."""

from typing import Any

import pytest

from controllers.worlds.argo.reading.nodes import project_node
from controllers.worlds.argo.reading.versions import Version, argo_version, has_resize, server_version, version_in
from tests.controllers.worlds.argo.objects import node


@pytest.mark.parametrize(
    ("written", "version"),
    [
        ("v1.33.13", Version(1, 33, 13)),
        ("v1.33.5-eks-3025e55", Version(1, 33, 5)),
        ("v1.34.1-gke.1829001", Version(1, 34, 1)),
        ("1.33+", Version(1, 33)),
        ("v3.7.14", Version(3, 7, 14)),
        ("v4.1.0-rc2", Version(4, 1, 0)),
        ("latest", None),
        ("", None),
        ("1.2.3.4", None),
        ("99999.1.1", None),
        ("1." + "3" * 300, None),
    ],
)
def test_a_version_is_read_whatever_a_vendor_adds(written: str, version: Version | None) -> None:
    assert version_in(written) == version


@pytest.mark.parametrize("answer", [{}, {"gitVersion": 7}, {"gitVersion": "weekly"}, {"gitVersion": "v" * 5000}])
def test_a_server_that_tells_no_version_has_none(answer: dict[str, Any]) -> None:
    assert server_version(answer) is None


def test_the_subresource_for_resizes_is_found_among_the_others() -> None:
    listed = [{"name": "pods"}, {"name": "pods/exec"}, {"name": "pods/resize"}]
    assert has_resize({"resources": listed})
    assert not has_resize({"resources": listed[:2]})
    assert not has_resize({"resources": "pods/resize"})


def pod(name: str = "wait", image: object = "quay.io/argoproj/argoexec:v3.7.14", where: str = "containers") -> Any:  # noqa: ANN401
    return {"spec": {where: [{"name": "main", "image": "trainer/argoexec:v9.9.9"}, {"name": name, "image": image}]}}


@pytest.mark.parametrize(
    ("made", "version"),
    [
        (pod(), Version(3, 7, 14)),
        (pod("init", where="initContainers"), Version(3, 7, 14)),
        (pod(image="mirror.example:5000/a/argoexec:v3.6.18@sha256:" + "0f" * 32), Version(3, 6, 18)),
        (pod(image="quay.io/argoproj/argoexec:latest"), None),
        (pod(image="quay.io/argoproj/argoexec@sha256:" + "0f" * 32), None),
        (pod(image="our/executor:v3.7.14"), None),
        (pod("sidecar"), None),
        (pod(image=3), None),
        ({}, None),
    ],
)
def test_argos_version_is_that_of_the_image_of_its_own_containers(made: Any, version: Version | None) -> None:  # noqa: ANN401
    assert argo_version(made) == version


@pytest.mark.parametrize(
    ("written", "resizes"), [("v1.32.9", False), ("v1.33.0", True), ("v1.36.2", True), ("odd", True)]
)
def test_a_kubelet_before_1_33_changes_no_shares(written: str, resizes: bool) -> None:  # noqa: FBT001
    item = node("n1")
    item["status"]["nodeInfo"] = {"kubeletVersion": written}
    record = project_node(item)
    assert record is not None
    assert record.resizes is resizes
