"""Cgroups (version 1) that give each node its share of one core, and readings from them."""

from pathlib import Path
from typing import Final

from tests.cluster.layout import CGROUP, NodeSpec

HIERARCHIES: Final = Path("/sys/fs/cgroup")
PERIOD: Final = 100_000
# All nodes together compete with each task of the host as one: this many times a task's weight.
WEIGHT: Final = 8 * 1024


def hierarchies() -> list[Path]:
    """The host's cgroup version 1 hierarchies."""
    return sorted(path for path in HIERARCHIES.iterdir() if path.name != "unified" and path.is_mount())


def make(node: NodeSpec) -> None:
    """Make a node's cgroup in every hierarchy and limit it to its share of its core."""
    for hierarchy in hierarchies():
        for path in (hierarchy / CGROUP, hierarchy / node.cgroup):
            path.mkdir(exist_ok=True)
    cpuset = HIERARCHIES / "cpuset"
    for path in (cpuset / CGROUP, cpuset / node.cgroup):
        for setting in ("cpuset.cpus", "cpuset.mems"):
            (path / setting).write_text((cpuset / setting).read_text())
    (cpuset / node.cgroup / "cpuset.cpus").write_text(str(node.cpu))
    cpu = HIERARCHIES / "cpu"
    (cpu / CGROUP / "cpu.shares").write_text(str(WEIGHT))
    (cpu / node.cgroup / "cpu.cfs_period_us").write_text(str(PERIOD))
    (cpu / node.cgroup / "cpu.cfs_quota_us").write_text(str(int(node.cores * PERIOD)))


def remove(path_below_hierarchy: str = CGROUP) -> None:
    """Remove a cgroup and all below it; no process may be left in it."""
    for hierarchy in hierarchies():
        root = hierarchy / path_below_hierarchy
        if root.exists():
            below = sorted((path for path in root.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts))
            for path in (*below, root):
                path.rmdir()


def pod_folder(node: NodeSpec, pod_uid: str, hierarchy: str = "cpu") -> Path:
    """The cgroup of a pod; it raises FileNotFoundError where the node has none."""
    for path in (HIERARCHIES / hierarchy / node.cgroup).glob(f"kubepods/**/pod{pod_uid}"):
        return path
    message = f"node {node.name} has no cgroup for pod {pod_uid}"
    raise FileNotFoundError(message)


def pod_cpu_shares(node: NodeSpec, pod_uid: str) -> int:
    """The weight (1024 for a core) by which a pod competes for its node's CPU, as the kernel knows it."""
    return int((pod_folder(node, pod_uid) / "cpu.shares").read_text())


def container_cpu_shares(node: NodeSpec, pod_uid: str, container_id: str) -> int:
    """The weight of one container; the id is the status's, without `containerd://`."""
    return int((pod_folder(node, pod_uid) / container_id / "cpu.shares").read_text())


def pod_cpu_seconds(node: NodeSpec, pod_uid: str) -> float:
    """The CPU time that a pod has used since it started."""
    return int((pod_folder(node, pod_uid, "cpuacct") / "cpuacct.usage").read_text()) / 1e9


def remove_below(node: NodeSpec) -> None:
    """Remove the cgroups that a lost node's kubelet had made."""
    for hierarchy in hierarchies():
        for below in (hierarchy / node.cgroup).iterdir():
            if below.is_dir():
                remove(str(below.relative_to(hierarchy)))
