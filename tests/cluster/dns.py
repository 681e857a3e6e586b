"""Names for services: CoreDNS beside the control plane, at the usual address of the cluster's DNS."""

from typing import Any, Final

from tests.cluster.building import binary
from tests.cluster.certificates import Authority
from tests.cluster.layout import API_SERVER, CONTROL_ADDRESS, DNS_SERVICE_ADDRESS, Layout
from tests.cluster.machine import Machine

ACCOUNT: Final = "coredns"
PORT: Final = 53
CONFIGURATION: Final = """\
.:53 {{
    bind {address}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
    cache 5
}}
"""


def issue_certificates(authority: Authority) -> None:
    """Write the kubeconfig file with which the DNS server reads services."""
    authority.kubeconfig(API_SERVER, ACCOUNT, ACCOUNT)


def start(machine: Machine, layout: Layout) -> None:
    """Start the DNS server."""
    kubeconfig = layout.certificates / f"{ACCOUNT}.kubeconfig"
    path = machine.folder / "Corefile"
    path.write_text(CONFIGURATION.format(address=CONTROL_ADDRESS, kubeconfig=kubeconfig))
    machine.start("coredns", [binary("coredns"), "-conf", path], GOMAXPROCS="2")


def definitions() -> list[dict[str, Any]]:
    """The DNS server's permissions, its service, and where that leads."""
    return [*_permissions(), *_service()]


def _permissions() -> list[dict[str, Any]]:
    api = "rbac.authorization.k8s.io"
    reading = ["list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": reading},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": reading},
    ]
    metadata = {"name": "system:coredns"}
    role = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "system:coredns"},
        "subjects": [{"apiGroup": api, "kind": "User", "name": ACCOUNT}],
    }
    return [role, binding]


def _service() -> list[dict[str, Any]]:
    ports = [{"name": name, "protocol": protocol, "port": PORT} for name, protocol in (("dns", "UDP"), ("tcp", "TCP"))]
    metadata = {"name": "kube-dns", "namespace": "kube-system", "labels": {"kubernetes.io/service-name": "kube-dns"}}
    service = {"clusterIP": DNS_SERVICE_ADDRESS, "ports": ports}
    slice_ = {"addressType": "IPv4", "ports": ports, "endpoints": [{"addresses": [CONTROL_ADDRESS]}]}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata, **slice_},
    ]
