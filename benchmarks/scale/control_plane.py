"""etcd, an API server and KWOK on free loopback ports, for as long as a measurement lasts. Nothing else is started."""

import os
import secrets
import socket
import time
import urllib.error
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks.scale.programs import built, etcd
from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.local.processes import Tethered, start_tethered

_STAGES: Final = Path(__file__).with_name("kwok_stages.yaml")
_READY_S: Final = 60.0
# Renewed every ten seconds, as real kubelets do, a thousand leases would take a core; nothing of ours watches them.
_LEASE_S: Final = 600


class ControlPlaneError(Exception):
    """A part of the control plane did not come up. The message names its log."""


class ControlPlane:
    """A context manager; ``api`` may be used inside it. Data and logs are kept in ``folder``.

    ``kubelet_port`` is where the API server finds every node's kubelet on this machine.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self._tell = tell
        self._stack = ExitStack()
        self._processes: dict[str, Tethered] = {}
        self._etcd_port, self._etcd_peer_port, self._port, self.kubelet_port = free_ports(4)
        self.kubeconfig = folder / "kubeconfig"
        self._certificates = folder / "certificates"

    @property
    def certificate(self) -> tuple[Path, Path]:
        """A certificate of the API server's own making, and its key."""
        return self._certificates / "apiserver.crt", self._certificates / "apiserver.key"

    @property
    def api(self) -> KubeApi:
        """Access as an administrator."""
        return KubeApi.load(str(self.kubeconfig))

    @property
    def pids(self) -> Mapping[str, int]:
        """Ids of its processes, by what they are."""
        return {name: process.pid for name, process in self._processes.items()}

    def __enter__(self) -> Self:
        with self._stack:
            self._start_etcd()
            self._start_api_server()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tend_kwok(self) -> None:
        """Start what plays the kubelets, also again: version 0.7.0 may crash as it begins (concurrent map writes)."""
        running = self._processes.get("kwok")
        if running is None or running.poll() is not None:
            self._start_kwok()

    def _start_kwok(self) -> None:
        self._start(
            "kwok",
            built("kwok"),
            "--kubeconfig",
            str(self.kubeconfig),
            "--manage-all-nodes",
            f"--config={_STAGES}",
            f"--node-lease-duration-seconds={_LEASE_S}",
            "--cidr=10.64.0.0/10",
            "--v=WARN",
        )

    def _start_etcd(self) -> None:
        self._tell("starting etcd and the API server")
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._etcd_peer_port))
        self._start(
            "etcd",
            etcd(),
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--quota-backend-bytes=4294967296",
        )

    def _start_api_server(self) -> None:
        token = secrets.token_hex(16)
        key = self._write("service-accounts.key", _new_key())
        tokens = self._write("tokens.csv", f"{token},admin,admin,system:masters\n")
        self._start(
            "kube-apiserver",
            built("kubernetes"),
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={self._certificates}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
            # Without a controller manager nobody would take this plugin's taint from the nodes.
            "--disable-admission-plugins=TaintNodesByCondition",
            "--kubelet-preferred-address-types=InternalIP",
            # Debian's etcd 3.4 cannot serve streamed lists, and KWOK asks for them again and again.
            "--feature-gates=WatchList=false",
        )
        self._wait_for_api(token)

    def _wait_for_api(self, token: str) -> None:
        deadline = time.monotonic() + _READY_S
        while not self._ready(token):
            if time.monotonic() > deadline or self._processes["kube-apiserver"].poll() is not None:
                message = f"the API server did not come up; see {self.folder}/*.log"
                raise ControlPlaneError(message)
            time.sleep(0.2)

    def _ready(self, token: str) -> bool:
        if not self.certificate[0].exists():
            return False
        if not self.kubeconfig.exists():
            self._write("kubeconfig", _kubeconfig(self._port, self.certificate[0], token))
        try:
            self.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            self.api.get("/api/v1/namespaces/default")
        except (ApiError, urllib.error.URLError):
            return False
        return True

    def _start(self, name: str, *command: str) -> None:
        process = start_tethered(command, dict(os.environ), self.folder / f"{name}.log", cwd=self.folder)
        self._stack.callback(process.terminate)
        self._processes[name] = process

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text)
        return path


def free_ports(number: int) -> Sequence[int]:
    """Return ports of the loopback interface that nobody listens on."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(number)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _new_key() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


def _kubeconfig(port: int, certificate: Path, token: str) -> str:
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(certificate)}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "scale", "cluster": cluster}],
            "users": [{"name": "scale", "user": {"token": token}}],
            "contexts": [{"name": "scale", "context": {"cluster": "scale", "user": "scale"}}],
            "current-context": "scale",
        }
    )
