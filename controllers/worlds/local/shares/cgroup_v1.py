"""Shares by control groups version 1: the controllers cpu and cpuacct, mounted together or apart."""

from pathlib import Path
from typing import Final

from controllers.worlds.local.shares.base import SharesError
from controllers.worlds.local.shares.cgroup import kill_all, period_us
from controllers.worlds.local.shares.folders import GroupFolder
from controllers.worlds.local.shares.mounts import Mounts

_SHARES_PER_CORE: Final = 1024
_MIN_SHARES, _MAX_SHARES = 2, 262_144


class GroupsV1:
    """See ``Groups``. ``cpu`` and ``cpuacct`` are the run's groups; the same folder if mounted together."""

    description = (
        "cgroup v1: the kernel enforces each node's quota and the trials' weights; "
        "on a node of several cores weights count where trials want the same core"
    )

    def __init__(self, cpu: GroupFolder, cpuacct: GroupFolder) -> None:
        self._cpu, self._cpuacct = cpu, cpuacct
        self._folders = [cpu] if cpu.root.resolve() == cpuacct.root.resolve() else [cpu, cpuacct]

    def make_run(self) -> None:
        """See ``Groups``."""
        self._make(Path())

    def make_node(self, node: str, cpu: float) -> None:
        """See ``Groups``."""
        self._make(Path(node))
        self._cpu.write(Path(node), "cpu.cfs_period_us", str(period_us(cpu)))
        self._cpu.write(Path(node), "cpu.cfs_quota_us", str(round(period_us(cpu) * cpu)))
        self._write_shares(Path(node), cpu)

    def weigh_run(self, cpu: float) -> None:
        """See ``Groups``."""
        self._write_shares(Path(), cpu)

    def make_trial(self, path: Path) -> tuple[str, ...]:
        """See ``Groups``."""
        self._make(path)
        return tuple(str(folder.root / path / "cgroup.procs") for folder in self._folders)

    def weigh(self, path: Path, cpu: float, node_cpu: float) -> None:  # noqa: ARG002 - version 2 needs it
        """See ``Groups``."""
        self._write_shares(path, cpu)

    def used(self, path: Path) -> float:
        """See ``Groups``."""
        return int(self._cpuacct.read(path, "cpuacct.usage")) / 1e9

    def pids(self, path: Path) -> set[int]:
        """See ``Groups``."""
        return {pid for folder in self._folders for pid in folder.pids(path)}

    def kill(self, path: Path) -> None:
        """See ``Groups``."""
        kill_all(self, path)

    def drop(self, path: Path) -> bool:
        """See ``Groups``."""
        dropped = [folder.drop(path) for folder in self._folders]
        return all(dropped)

    def _make(self, path: Path) -> None:
        for folder in self._folders:
            folder.make(path)

    def _write_shares(self, path: Path, cpu: float) -> None:
        shares = round(cpu * _SHARES_PER_CORE)
        self._cpu.write(path, "cpu.shares", str(min(_MAX_SHARES, max(_MIN_SHARES, shares))))


def groups_v1(run: str, mounts: Mounts) -> GroupsV1:
    """Return the groups of ``run``.

    Raises:
        SharesError: cpu or cpuacct is not mounted as version 1.
    """
    cpu, cpuacct = mounts.v1("cpu"), mounts.v1("cpuacct")
    if cpu is None or cpuacct is None:
        msg = "no cgroup v1 hierarchy with cpu and cpuacct is mounted"
        raise SharesError(msg)
    return GroupsV1(GroupFolder(cpu / f"specon-{run}"), GroupFolder(cpuacct / f"specon-{run}"))
