"""Cgroups (version 1) that give each node its share of one core, and readings from them."""

from pathlib import Path
from typing import Final

from tests.cluster.commands import ClusterError
from tests.cluster.layout import CGROUP, NodeSpec

HIERARCHIES: Final = Path("/sys/fs/cgroup")
PERIOD: Final = 100_000
# All nodes together compete with each task of the host as one: this many times a task's weight.
WEIGHT: Final = 64 * 1024


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
    """Remove a cgroup and all below it, if it is there; no process may be left in it."""
    for hierarchy in hierarchies():
        root = hierarchy / path_below_hierarchy
        if root.exists():
            below = sorted((path for path in root.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts))
            for path in (*below, root):
                path.rmdir()


def cpu_seconds_of(node: NodeSpec) -> float:
    """The CPU time that a node has used, with all on it, since it was made."""
    return int((HIERARCHIES / "cpuacct" / node.cgroup / "cpuacct.usage").read_text()) / 1e9


def pod_folder(pod_uid: str, hierarchy: str = "cpu") -> Path:
    """The cgroup of a pod on whichever node runs it.

    Raises:
        ClusterError: no node has one for it.
    """
    for path in (HIERARCHIES / hierarchy / CGROUP).glob(f"*/kubepods/**/pod{pod_uid}"):
        return path
    message = f"no node has a cgroup for pod {pod_uid}"
    raise ClusterError(message)


def cpu_shares(pod_uid: str, container_id: str = "") -> int:
    """The weight (1024 for a core) by which a pod, or a container of it, competes for CPU, as the kernel knows it.

    The container's id is the one in the pod's status; its prefix `containerd://` is ignored.
    """
    folder = pod_folder(pod_uid) / container_id.removeprefix("containerd://")
    return int((folder / "cpu.shares").read_text())


def cpu_seconds(pod_uid: str) -> float:
    """The CPU time that a pod has used since it started."""
    return int((pod_folder(pod_uid, "cpuacct") / "cpuacct.usage").read_text()) / 1e9
