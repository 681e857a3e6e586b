"""What keeps a machine from holding a cluster, each with what to do about it."""

import os
import subprocess
from typing import Final

from tests.cluster.building import missing_packages
from tests.cluster.node_cgroups import HIERARCHIES

NEEDED_HIERARCHIES: Final = ("cpu", "cpuacct", "cpuset", "memory", "pids")
ELSEWHERE: Final = "run the tests on another cluster with KUBECONFIG (docs/how-to/run-the-cluster-tests.md)"


def obstacles() -> list[str]:
    """Every reason why no cluster can be brought up here; none means that it can."""
    if os.geteuid() != 0:
        return [f"only root can make nodes out of namespaces: become root, or {ELSEWHERE}"]
    found = [*_cgroup_obstacles(), *_namespace_obstacles()]
    packages = missing_packages()
    if packages:
        found.append(f"missing packages: apt-get install {' '.join(packages)}")
    return found


def _cgroup_obstacles() -> list[str]:
    missing = [name for name in NEEDED_HIERARCHIES if not os.access(HIERARCHIES / name / "cgroup.procs", os.W_OK)]
    if not missing:
        return []
    where = f"{HIERARCHIES}/{{{','.join(missing)}}}"
    cure = f"start the kernel with systemd.unified_cgroup_hierarchy=0, or {ELSEWHERE}"
    return [f"no writable cgroup version 1 hierarchy at {where}: {cure}"]


def _namespace_obstacles() -> list[str]:
    command = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "true"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []  # named among the missing packages
    if tried.returncode == 0:
        return []
    return [f"this machine allows no namespaces ({tried.stderr.strip()}): {ELSEWHERE}"]
