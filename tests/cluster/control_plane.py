"""etcd, API server, controller manager and scheduler, in a machine of their own."""

import http.client
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.building import kubernetes_binary
from tests.cluster.certificates import Authority
from tests.cluster.layout import (
    API_SERVER,
    API_SERVER_PORT,
    CONTROL_ADDRESS,
    KUBERNETES_SERVICE_ADDRESS,
    POD_RANGE,
    SERVICE_RANGE,
    Layout,
)
from tests.cluster.machine import Machine

NAMES: Final = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
ETCD: Final = "http://127.0.0.1:2379"
# Two of its threads are enough for it, and leave the nodes theirs.
THREADS: Final = "2"
"""Characters of the end of a log that tell why a component has ended."""


def issue_certificates(authority: Authority, layout: Layout) -> None:
    """Write every certificate and kubeconfig file that the control plane needs, and the administrator's."""
    hosts = (*NAMES, CONTROL_ADDRESS, KUBERNETES_SERVICE_ADDRESS, "127.0.0.1")
    authority.issue("apiserver", "kube-apiserver", hosts=hosts)
    authority.issue("apiserver-to-kubelet", "kube-apiserver-kubelet-client", ("system:masters",))
    authority.service_account_keys()
    for component in ("kube-controller-manager", "kube-scheduler", "kube-proxy"):
        authority.kubeconfig(API_SERVER, component, f"system:{component}")
    authority.kubeconfig(API_SERVER, layout.kubeconfig.stem, "admin", ("system:masters",))


@dataclass(frozen=True)
class ControlPlane:
    """The components of the control plane and how to start each."""

    machine: Machine
    layout: Layout

    def start(self) -> None:
        """Start all of it and wait until the API server is ready."""
        self.start_etcd()
        self.start_api_server()
        self.wait_until_ready()
        self.start_controller_manager()
        self.start_scheduler()

    def start_etcd(self) -> None:
        """Start etcd; what is lost with the machine is lost with the cluster, so it need not be durable."""
        data = self.layout.machine("control") / "etcd"
        urls = ["--listen-client-urls", ETCD, "--advertise-client-urls", ETCD]
        peers = ["--listen-peer-urls", "http://127.0.0.1:2380"]
        self.machine.start("etcd", ["etcd", "--data-dir", data, "--unsafe-no-fsync", *urls, *peers], GOMAXPROCS=THREADS)

    def start_api_server(self) -> None:
        """Start the API server; `wait_until_ready` waits for it."""
        self._start("kube-apiserver", [*self._serving(), *self._trust(), *self._behaviour()])

    def _serving(self) -> list[str]:
        return [
            f"--etcd-servers={ETCD}",
            f"--bind-address={CONTROL_ADDRESS}",
            f"--advertise-address={CONTROL_ADDRESS}",
            f"--secure-port={API_SERVER_PORT}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            f"--tls-cert-file={self._file('apiserver.crt')}",
            f"--tls-private-key-file={self._file('apiserver.key')}",
        ]

    def _trust(self) -> list[str]:
        return [
            f"--client-ca-file={self._file('ca.crt')}",
            f"--kubelet-certificate-authority={self._file('ca.crt')}",
            f"--kubelet-client-certificate={self._file('apiserver-to-kubelet.crt')}",
            # Nodes have no names outside the cluster.
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-client-key={self._file('apiserver-to-kubelet.key')}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._file('service-accounts.pub')}",
            f"--service-account-signing-key-file={self._file('service-accounts.key')}",
        ]

    def _behaviour(self) -> list[str]:
        return [
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--default-not-ready-toleration-seconds=5",
            "--default-unreachable-toleration-seconds=5",
            # It would need etcd 3.4.25; clients only complain of it, in their logs, again and again.
            "--feature-gates=WatchList=false",
        ]

    def start_controller_manager(self) -> None:
        """Start the controller manager; it ends at once where the API server is not ready."""
        flags = [
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._file('service-accounts.key')}",
            f"--root-ca-file={self._file('ca.crt')}",
            f"--cluster-cidr={POD_RANGE}",
            "--allocate-node-cidrs=false",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=8s",
        ]
        self._start("kube-controller-manager", [*flags, *self._as_client("kube-controller-manager")])

    def start_scheduler(self) -> None:
        """Start the default scheduler."""
        self._start("kube-scheduler", self._as_client("kube-scheduler"))

    def is_ready(self) -> bool:
        """Whether the API server says that it is ready."""
        context = ssl.create_default_context(cafile=str(self._file("ca.crt")))
        connection = http.client.HTTPSConnection(CONTROL_ADDRESS, API_SERVER_PORT, timeout=2, context=context)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def wait_until_ready(self) -> None:
        """Wait until the API server is ready.

        Raises:
            ClusterError: it has ended, or is not ready within a minute.
        """
        self.machine.wait_for("kube-apiserver", self.is_ready)

    def _as_client(self, component: str) -> list[str]:
        kubeconfig = self._file(f"{component}.kubeconfig")
        uses = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
        return [*(f"--{use}={kubeconfig}" for use in uses), "--leader-elect=false", "--bind-address=127.0.0.1"]

    def _start(self, component: str, flags: list[str]) -> None:
        self.machine.start(component, [kubernetes_binary(), component, *flags], GOMAXPROCS=THREADS)

    def _file(self, name: str) -> Path:
        return self.layout.certificates / name
