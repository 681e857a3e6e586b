"""The real kube-scheduler puts each pod where our model of it would."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from controllers.worlds.argo.reading.nodes import project_node
from controllers.worlds.argo.reading.pods import requests_of
from controllers.worlds.kube_scheduler import BalanceRule, NodeLoad, scores
from tests.cluster.any_cluster import AnyCluster
from tests.cluster.kubectl import JsonObject, Kubectl
from tests.cluster.processes import wait_until
from tests.cluster.versions import SHELL_IMAGE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

# Three quarters of a core in all: they must fit on what the cluster of these tests has to give.
_MIXED = (("50m", "64Mi"), ("120m", "16Mi"), ("10m", "256Mi"), ("70m", "128Mi"), ("25m", "32Mi"), ("100m", "9Mi")) * 2


def sleeper(name: str, cpu: str, memory: str) -> JsonObject:
    container = {
        "name": "main",
        "image": SHELL_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "1000"],
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def loads(cluster: AnyCluster) -> list[NodeLoad]:
    """Return the nodes and what is requested of each, as the scheduler counts it."""
    pods = [pod for pod in _items(cluster, "pods", "--all-namespaces") if not _over(pod)]
    return [_load(node, pods) for node in _items(cluster, "nodes")]


def _items(cluster: AnyCluster, *what: str) -> list[JsonObject]:
    found: list[JsonObject] = json.loads(cluster.kubectl("get", *what, "--output=json"))["items"]
    return found


def _over(pod: Mapping[str, Any]) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def _load(node: JsonObject, pods: list[JsonObject]) -> NodeLoad:
    record = project_node(node)
    assert record is not None
    here = [requests_of(pod) for pod in pods if pod["spec"].get("nodeName") == record.name]
    return NodeLoad(
        record.name,
        record.cpu,
        record.memory,
        sum(load.cpu for load in here),
        sum(load.memory for load in here),
        record.fit,
        sum(not load.cpu for load in here),
        sum(not load.memory for load in here),
    )


def _rule(cluster: AnyCluster) -> BalanceRule:
    version = json.loads(cluster.kubectl("version", "--output=json"))["serverVersion"]
    newer = (int(version["major"]), int(version["minor"].rstrip("+"))) >= (1, 36)
    return BalanceRule.CHANGE if newer else BalanceRule.RESULT


def test_pods_of_mixed_requests_go_to_a_node_that_scores_best(cluster: AnyCluster, namespace: Kubectl) -> None:
    rule = _rule(cluster)
    for number, (cpu, memory) in enumerate(_MIXED):
        pod = sleeper(f"mixed-{number}", cpu, memory)
        asked = requests_of(pod)
        expected = scores(asked.cpu, asked.memory, loads(cluster), rule)
        namespace.create([pod])
        name = pod["metadata"]["name"]
        wait_until(lambda name=name: _node(namespace, name) != "", f"pod {name} has a node", 30)  # type: ignore[misc] # bound in the loop
        chosen = _node(namespace, name)
        assert expected[chosen] == max(expected.values()), f"pod {number} ({cpu}, {memory}): {chosen} of {expected}"


def _node(namespace: Kubectl, pod: str) -> str:
    return str(namespace.get("pod", pod)["spec"].get("nodeName", ""))
