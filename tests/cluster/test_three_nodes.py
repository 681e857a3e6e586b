"""The nodes are ready, run pods, contend for CPU, and can be lost and return."""

import json

import pytest

from tests.cluster.any_cluster import AnyCluster
from tests.cluster.kubectl import JsonObject, Kubectl
from tests.cluster.processes import wait_until
from tests.cluster.versions import SHELL_IMAGE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]


def pod(name: str, command: str, cpu: str = "50m", **spec: object) -> JsonObject:
    main = {
        "name": "main",
        "image": SHELL_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}},
    }
    settings = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": settings}


def phase(kubectl: Kubectl, name: str) -> str:
    return str(kubectl.get("pod", name)["status"]["phase"])


def wait_for_phase(kubectl: Kubectl, name: str, wanted: str) -> JsonObject:
    wait_until(lambda: phase(kubectl, name) == wanted, f"pod {name} is {wanted}", 60, interval=0.3)
    return kubectl.get("pod", name)


def test_three_nodes_are_ready(cluster: AnyCluster) -> None:
    assert len(cluster.node_names) >= 3
    assert set(cluster.node_names) <= cluster.kubectl.ready_nodes()


def test_a_pod_reaches_the_api_server_by_the_name_of_its_service(namespace: Kubectl) -> None:
    namespace.create([pod("asker", "nc -w 5 kubernetes.default.svc.cluster.local 443 </dev/null")])
    wait_for_phase(namespace, "asker", "Succeeded")


def test_pods_on_different_nodes_reach_each_other(cluster: AnyCluster, namespace: Kubectl) -> None:
    server, client = cluster.node_names[:2]
    namespace.create([pod("server", "while true; do echo hello | nc -l -p 8000; done", nodeName=server)])
    address = wait_for_phase(namespace, "server", "Running")["status"]["podIP"]
    asking = f'until test hello = "$(nc -w 5 {address} 8000 </dev/null)"; do sleep 1; done'
    namespace.create([pod("client", asking, nodeName=client)])
    wait_for_phase(namespace, "client", "Succeeded")


def test_a_resize_in_place_reaches_the_kernel_without_a_restart(cluster: AnyCluster, namespace: Kubectl) -> None:
    namespace.create([pod("worker", "sleep 1000", cpu="100m")])
    before = wait_for_phase(namespace, "worker", "Running")
    uid, container = before["metadata"]["uid"], before["status"]["containerStatuses"][0]["containerID"]
    assert cluster.cpu_shares(uid, container) == 102
    resources = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}
    namespace("patch", "pod", "worker", "--subresource=resize", "--patch", json.dumps({"spec": resources}))
    wait_until(lambda: cluster.cpu_shares(uid, container) == 204, "the kernel has the new share", 20)
    after = namespace.get("pod", "worker")["status"]["containerStatuses"][0]
    assert after["containerID"] == container
    assert after["restartCount"] == 0


def test_cpu_is_shared_by_requests(cluster: AnyCluster, namespace: Kubectl) -> None:
    node = cluster.node_names[0]
    busy = "while true; do :; done"
    namespace.create([pod("large", busy, "60m", nodeName=node), pod("small", busy, "30m", nodeName=node)])
    uids = [wait_for_phase(namespace, name, "Running")["metadata"]["uid"] for name in ("large", "small")]
    begun = [cluster.cpu_seconds(uid) for uid in uids]

    def used() -> list[float]:
        return [cluster.cpu_seconds(uid) - start for uid, start in zip(uids, begun, strict=True)]

    wait_until(lambda: sum(used()) > 3, "both have used CPU", 60, interval=0.2)
    large, small = used()
    assert 1.5 < large / small < 2.6


def test_pods_of_a_lost_node_are_evicted_and_it_returns(cluster: AnyCluster, namespace: Kubectl) -> None:
    node = cluster.node_names[-1]
    namespace.create([pod("victim", "sleep 1000", nodeName=node)])
    uid = wait_for_phase(namespace, "victim", "Running")["metadata"]["uid"]
    cluster.lose_node(node)
    try:
        wait_until(lambda: node not in cluster.kubectl.ready_nodes(), f"{node} is lost", 60, interval=0.5)
        wait_until(lambda: "deletionTimestamp" in namespace.get("pod", "victim")["metadata"], "its pod is evicted", 60)
    finally:
        cluster.return_node(node)
    wait_until(lambda: node in cluster.kubectl.ready_nodes(), f"{node} is back", 60, interval=0.5)
    wait_until(lambda: uid not in namespace("get", "pods", "--output=yaml"), "its pod is gone", 60, interval=0.5)


def test_containers_run_on_without_their_kubelet(cluster: AnyCluster, namespace: Kubectl) -> None:
    node = cluster.node_names[0]
    namespace.create([pod("busy", "while true; do :; done", nodeName=node)])
    uid = wait_for_phase(namespace, "busy", "Running")["metadata"]["uid"]
    cluster.kill_kubelet(node)
    try:
        used = cluster.cpu_seconds(uid)
        wait_until(lambda: cluster.cpu_seconds(uid) > used + 0.5, "the container uses CPU", 30)
    finally:
        cluster.start_kubelet(node)
    wait_until(lambda: node in cluster.kubectl.ready_nodes(), f"{node} is ready", 60, interval=0.5)


def test_the_api_server_forgets_nothing_over_a_restart(cluster: AnyCluster, namespace: Kubectl) -> None:
    namespace("create", "configmap", "kept", "--from-literal=a=b")
    cluster.restart_apiserver()
    assert namespace.get("configmap", "kept")["data"] == {"a": "b"}
