"""Kueue in a cluster: what it publishes for installing it, its manager as a process, and queues for tests."""

import base64
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.building import HERE, KUEUE_PROGRAM, binary, build_program
from tests.cluster.certificates import Authority
from tests.cluster.cluster import CONTROL, Cluster
from tests.cluster.kubectl import JsonObject
from tests.cluster.layout import CONTROL_ADDRESS
from tests.cluster.other_modules import published

MODULE: Final = "sigs.k8s.io/kueue"
GROUP: Final = "kueue.x-k8s.io/v1beta2"
NAMESPACE: Final = "kueue-system"
QUEUE: Final = "team"
"""Name of the queue that each namespace gets."""
FLAVOR: Final = "any-node"
_WEBHOOK_PORT: Final = 9443
_HEALTH_PORT: Final = 8081
_WEBHOOKS: Final = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
_LEFT_OUT: Final = frozenset({"Deployment", "Service", "Secret", "APIService"})
"""The manager is no pod here, and serves no API of its own."""
_OF_METRICS: Final = "/etc/kueue/metrics/certs"
_READY_S: Final = 60.0


def _settings(certificates: Path) -> JsonObject:
    """The manager's configuration: pods are its business, and its certificates are ours."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f":{_HEALTH_PORT}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": _WEBHOOK_PORT, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 50, "burst": 100},
        "integrations": {"frameworks": ["batch/job", "pod"]},
        "managedJobsNamespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
            ]
        },
    }


def definitions(cluster: Cluster, authority: bytes) -> list[JsonObject]:
    """The custom resources, permissions and webhooks, as Kueue publishes them; the API server calls its manager here.

    Args:
        cluster: Where they go.
        authority: The certificate of what signed the manager's.
    """
    sources = Path(published(MODULE, "", HERE / "kueue")["Dir"])
    rendered = yaml.safe_load_all(cluster.kubectl("kustomize", sources / "config" / "default"))
    found = [one for one in rendered if one and one["kind"] not in _LEFT_OUT]
    for one in found:
        for client in _clients(one):
            path = client.pop("service").get("path", "/")
            client["url"] = f"https://{CONTROL_ADDRESS}:{_WEBHOOK_PORT}{path}"
            client["caBundle"] = base64.b64encode(authority).decode()
    return found


def _clients(one: JsonObject) -> list[dict[str, Any]]:
    """Return where a definition says how the API server reaches the manager."""
    if one["kind"] in _WEBHOOKS:
        return [hook["clientConfig"] for hook in one.get("webhooks", ())]
    conversion = one.get("spec", {}).get("conversion") or {}
    return [conversion["webhook"]["clientConfig"]] if "webhook" in conversion else []


@contextmanager
def kueue_running(cluster: Cluster) -> Iterator[None]:
    """Install Kueue and run its manager beside the control plane; take all of it away in the end.

    While it runs, it decides about each new pod of the cluster, and while it is away, none can be made.
    """
    build_program(KUEUE_PROGRAM, cluster.tell)
    machine = cluster.machine(CONTROL)
    certificates = cluster.layout.certificates / "kueue"
    authority = Authority(certificates)
    certificate, key = authority.issue("kueue", "kueue", hosts=(CONTROL_ADDRESS,))
    certificate.rename(certificates / "tls.crt")
    key.rename(certificates / "tls.key")
    # Without certificates of its own making, it wants some for its metrics, too, though it serves none.
    machine.run("sh", "-c", f"mkdir -p {_OF_METRICS} && cp {certificates}/tls.* {_OF_METRICS}")
    settings = machine.folder / "kueue.yaml"
    settings.write_text(yaml.safe_dump(_settings(certificates)))
    found = definitions(cluster, authority.certificate.read_bytes())
    plain, hooks = ([one for one in found if (one["kind"] in _WEBHOOKS) is wanted] for wanted in (False, True))
    _apply(cluster, plain)
    # A manager that starts before the API server serves its resources ends at once.
    cluster.kubectl("wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=60s")
    flags = [f"--config={settings}", f"--kubeconfig={cluster.kubeconfig}", "--zap-log-level=2"]
    command: list[str | Path] = [binary(KUEUE_PROGRAM.name), *flags, "--feature-gates=VisibilityOnDemand=false"]
    machine.start("kueue", command, GOMAXPROCS="2")
    try:
        machine.wait_for("kueue", _is_ready, _READY_S)
        _apply(cluster, hooks)
        cluster.kubectl.create([_object("ResourceFlavor", FLAVOR)])
        yield
    finally:
        # First what the API server asks it about pods. Then its own objects, which take it to be read and let go.
        _delete(cluster, hooks)
        for kind in ("workloads", "localqueues", "clusterqueues", "resourceflavors"):
            cluster.kubectl("delete", f"{kind}.kueue.x-k8s.io", "--all", "--all-namespaces", "--timeout=60s")
        machine.kill("kueue")
        _delete(cluster, plain)


@contextmanager
def queue_of(cluster: Cluster, namespace: str, cohort: str, cpu: str) -> Iterator[str]:
    """Make a queue with so much CPU of its own, which lends to its ``cohort`` and borrows from it; give its name.

    What it lent it takes back by preemption.
    """
    resources = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": "8Gi"}]
    groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": FLAVOR, "resources": resources}]}]
    spec = {
        "cohortName": cohort,
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"},
        "resourceGroups": groups,
    }
    local = _object("LocalQueue", QUEUE) | {"spec": {"clusterQueue": namespace}}
    local["metadata"]["namespace"] = namespace
    cluster.kubectl.create([_object("ClusterQueue", namespace) | {"spec": spec}, local])
    try:
        yield QUEUE
    finally:
        cluster.kubectl("delete", "clusterqueue", namespace, "--wait=false", "--ignore-not-found")


def usage(cluster: Cluster, queue: str) -> tuple[float, float]:
    """Return the millicores that a ClusterQueue counts, and those of them that it borrows."""
    status = cluster.kubectl.get("clusterqueue", queue).get("status", {})
    found = [
        resource
        for flavor in status.get("flavorsUsage", ())
        for resource in flavor["resources"]
        if resource["name"] == "cpu"
    ]
    return sum(_milli(one["total"]) for one in found), sum(_milli(one.get("borrowed", "0")) for one in found)


def _milli(written: str | int) -> float:
    text = str(written)
    return float(text.removesuffix("m")) if text.endswith("m") else 1000 * float(text)


def _object(kind: str, name: str) -> JsonObject:
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}}


def _apply(cluster: Cluster, documents: list[JsonObject]) -> None:
    # The definitions of its resources are larger than an annotation, which a client's apply would need.
    text = yaml.safe_dump_all(documents)
    cluster.kubectl("apply", "--server-side", "--validate=false", "--filename", "-", text_input=text)


def _delete(cluster: Cluster, documents: list[JsonObject]) -> None:
    text = yaml.safe_dump_all(documents)
    cluster.kubectl("delete", "--ignore-not-found", "--timeout=60s", "--filename", "-", text_input=text)


def _is_ready() -> bool:
    try:
        with urllib.request.urlopen(f"http://{CONTROL_ADDRESS}:{_HEALTH_PORT}/readyz", timeout=2) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except (urllib.error.URLError, OSError):
        return False
