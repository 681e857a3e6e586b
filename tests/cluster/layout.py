"""Where a test cluster keeps its files, its addresses and its names."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BRIDGE: Final = "specon0"
HOST_ADDRESS: Final = "10.90.0.1"
CONTROL_ADDRESS: Final = "10.90.0.10"
API_SERVER_PORT: Final = 6443
API_SERVER: Final = f"https://{CONTROL_ADDRESS}:{API_SERVER_PORT}"
SERVICE_RANGE: Final = "10.96.0.0/16"
KUBERNETES_SERVICE_ADDRESS: Final = "10.96.0.1"
DNS_SERVICE_ADDRESS: Final = "10.96.0.10"
POD_RANGE: Final = "10.244.0.0/16"
CGROUP: Final = "hera-specon-cluster"


def cache_folder() -> Path:
    """Where builds and images are kept between runs: HERA_SPECON_CACHE, else ~/.cache/hera-specon."""
    return Path(os.environ.get("HERA_SPECON_CACHE", "~/.cache/hera-specon")).expanduser()


@dataclass(frozen=True)
class NodeSpec:
    """A node to make.

    Attributes:
        name: its name in Kubernetes.
        number: from 1; its addresses follow from it.
        cores: its share of a core, above 0 and at most 1.
        cpu: the core of the machine that it is pinned to.
        memory: bytes that its pods may use together.
    """

    name: str
    number: int
    cores: float
    cpu: int
    memory: int = 4 << 30

    @property
    def address(self) -> str:
        """The node's address on the bridge."""
        return f"10.90.0.{10 + self.number}"

    @property
    def pod_subnet(self) -> str:
        """The addresses of its pods."""
        return f"10.244.{self.number}.0/24"

    @property
    def cgroup(self) -> str:
        """Its cgroup's path below each hierarchy."""
        return f"{CGROUP}/{self.name}"


@dataclass(frozen=True)
class Layout:
    """The folders of one running cluster; nothing of it is outside `root`."""

    root: Path

    @property
    def logs(self) -> Path:
        """One file for each component of each machine."""
        return self.root / "logs"

    @property
    def certificates(self) -> Path:
        """Keys, certificates and kubeconfig files."""
        return self.root / "certificates"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        return self.certificates / "admin.kubeconfig"

    @property
    def machines(self) -> Path:
        """A folder for each machine."""
        return self.root / "machines"

    @property
    def nodes(self) -> Path:
        """What each node was given."""
        return self.root / "nodes.json"

    def machine(self, name: str) -> Path:
        """The private files of one machine."""
        return self.machines / name


def default_layout() -> Layout:
    """The layout of the one cluster that a machine can hold."""
    return Layout(cache_folder() / "running-cluster")
