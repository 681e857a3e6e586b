"""The kubelet and kube-proxy of a node."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.cluster import containerd
from tests.cluster.building import kubernetes_binary
from tests.cluster.certificates import Authority
from tests.cluster.layout import API_SERVER, DNS_SERVICE_ADDRESS, POD_RANGE, Layout, NodeSpec
from tests.cluster.machine import Machine

THREADS: Final = "2"


@dataclass(frozen=True)
class Registration:
    """What a kubelet tells of its node when it registers it.

    Attributes:
        provider_id: by which an autoscaler knows the machine; empty where there is none.
        taints: as the API has them.
    """

    provider_id: str = ""
    taints: Sequence[Mapping[str, str]] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """The part of the kubelet's configuration."""
        told = {"providerID": self.provider_id, "registerWithTaints": [dict(taint) for taint in self.taints]}
        return {name: value for name, value in told.items() if value}


PLAIN: Final = Registration()


def issue_certificates(authority: Authority, node: NodeSpec) -> None:
    """Write the certificates by which a kubelet serves and by which it reaches the API server."""
    user, groups = f"system:node:{node.name}", ("system:nodes",)
    authority.issue(f"{node.name}-serving", user, groups, hosts=(node.address, node.name))
    authority.kubeconfig(API_SERVER, node.name, user, groups)


def _total_memory() -> int:
    """The machine's memory in bytes."""
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:"))
    return int(line.split()[1]) * 1024


def configuration(node: NodeSpec, certificates: Path, registration: Registration = PLAIN) -> dict[str, Any]:
    """The kubelet's configuration: a node of one core; the pods may have the node's share of it."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{containerd.SOCKET}",
        **_security(node, certificates),
        **_resources(node),
        "clusterDNS": [DNS_SERVICE_ADDRESS],
        "clusterDomain": "cluster.local",
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "nodeStatusUpdateFrequency": "2s",
        "nodeLeaseDurationSeconds": 6,
        **registration.settings,
    }


def _security(node: NodeSpec, certificates: Path) -> dict[str, Any]:
    return {
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificates / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificates / f"{node.name}-serving.crt"),
        "tlsPrivateKeyFile": str(certificates / f"{node.name}-serving.key"),
    }


def _resources(node: NodeSpec) -> dict[str, Any]:
    reserved = {"cpu": f"{round((1 - node.cores) * 1000)}m", "memory": str(max(0, _total_memory() - node.memory))}
    return {
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": ["pods"],
        "failCgroupV1": False,
        "failSwapOn": False,
        # The node's own quota binds; a container's limit above that quota would not even start.
        "cpuCFSQuota": False,
        "systemReserved": reserved,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }


def start(machine: Machine, node: NodeSpec, layout: Layout, registration: Registration = PLAIN) -> None:
    """Start the node's kubelet."""
    path = machine.folder / "kubelet.json"
    path.write_text(json.dumps(configuration(node, layout.certificates, registration), indent=2))
    flags = [
        f"--config={path}",
        f"--kubeconfig={layout.certificates / node.name}.kubeconfig",
        f"--node-ip={node.address}",
        f"--hostname-override={node.name}",
    ]
    machine.start("kubelet", [kubernetes_binary(), "kubelet", *flags], GOMAXPROCS=THREADS)


def start_proxy(machine: Machine, node: NodeSpec, layout: Layout) -> None:
    """Start the node's kube-proxy, which leads from the addresses of services to pods."""
    settings = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(layout.certificates / "kube-proxy.kubeconfig")},
        "mode": "nftables",
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": node.name,
        # These settings are the whole kernel's.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    path = machine.folder / "kube-proxy.json"
    path.write_text(json.dumps(settings, indent=2))
    machine.start("kube-proxy", [kubernetes_binary(), "kube-proxy", f"--config={path}"], GOMAXPROCS=THREADS)
