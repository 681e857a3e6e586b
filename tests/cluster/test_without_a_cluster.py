"""Where there is no cluster, or one that is not ours, tests say so by name instead of passing."""

import json
from pathlib import Path

import pytest

from tests.cluster import requirement
from tests.cluster.given_cluster import GivenCluster
from tests.cluster.images.archives import IMAGES
from tests.cluster.kubectl import Kubectl


@pytest.fixture
def incapable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirement, "obstacles", lambda: ["no containerd"])


@pytest.mark.usefixtures("incapable")
def test_the_want_of_a_cluster_fails_the_test_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(requirement.OPTIONAL, raising=False)
    with pytest.raises(pytest.fail.Exception, match="no containerd"):
        requirement.require_a_capable_machine()


@pytest.mark.usefixtures("incapable")
def test_the_want_of_a_cluster_skips_the_test_only_where_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(requirement.OPTIONAL, "1")
    with pytest.raises(pytest.skip.Exception, match="no containerd"):
        requirement.require_a_capable_machine()


def test_programs_that_are_not_built_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(requirement.OPTIONAL, raising=False)
    monkeypatch.setattr(requirement, "obstacles", list)
    monkeypatch.setattr(requirement, "is_built", lambda: False)
    with pytest.raises(pytest.fail.Exception, match="not built yet"):
        requirement.require_a_capable_machine()


def test_what_a_given_cluster_can_not_do_is_skipped_by_name() -> None:
    given = GivenCluster(Path("kubeconfig"))
    with pytest.raises(pytest.skip.Exception, match="lose_node node-2: can't be done"):
        given.lose_node("node-2")
    with pytest.raises(pytest.skip.Exception, match="show_folder state"):
        given.show_folder(Path("state"))
    with pytest.raises(pytest.skip.Exception, match="cpu_shares"):
        given.cpu_shares("uid")


def test_a_given_cluster_that_lacks_what_the_tests_need_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    node = {
        "metadata": {"name": "kind-worker"},
        "spec": {},
        "status": {"images": [{"names": [image.full_name for image in IMAGES]}]},
    }
    control = {"metadata": {"name": "kind-control-plane"}, "spec": {"taints": [{"effect": "NoSchedule"}]}, "status": {}}
    answers = {
        "/version": json.dumps({"major": "1", "minor": "34+", "gitVersion": "v1.34.1"}),
        "customresourcedefinitions": "",
        "nodes": json.dumps({"items": [node, control]}),
    }
    monkeypatch.setattr(
        Kubectl, "__call__", lambda _self, *asked, **_: next(answers[word] for word in asked if word in answers)
    )
    old, argo, images = GivenCluster(Path("kubeconfig")).shortcomings()
    assert "v1.34.1" in old
    assert "Argo Workflows is not installed" in argo
    assert images == "node kind-worker lacks hera-specon.io/shell:1: load them into it"
