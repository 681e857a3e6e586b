"""Shares by control groups version 2, below any group that is delegated to this user."""

from pathlib import Path
from typing import Final

from controllers.worlds.local.shares.base import SharesError
from controllers.worlds.local.shares.cgroup import kill_all, period_us
from controllers.worlds.local.shares.folders import GroupFolder
from controllers.worlds.local.shares.mounts import Mounts

_CONTROLLERS, _SUBTREE, _WEIGHT = "cgroup.controllers", "cgroup.subtree_control", "cpu.weight"
_MAX_WEIGHT: Final = 10_000
_WEIGHT_PER_CORE: Final = 100
_HERE: Final = Path()


class GroupsV2:
    """See ``Groups``. Processes are only in the trials' groups, as version 2 wants it."""

    description = (
        "cgroup v2: the kernel enforces each node's quota and the trials' weights; "
        "on a node of several cores weights count where trials want the same core"
    )

    def __init__(self, run: GroupFolder) -> None:
        self._run = run

    def make_run(self) -> None:
        """See ``Groups``."""
        parent = GroupFolder(self._run.root.parent)
        _require_cpu(parent, _HERE)
        if "cpu" not in parent.read(_HERE, _SUBTREE).split():
            # The kernel refuses where processes are in the parent itself, unless it is the real root.
            parent.write(_HERE, _SUBTREE, "+cpu")
        self._run.make(_HERE)
        self._pass_on(_HERE)

    def make_node(self, node: str, cpu: float) -> None:
        """See ``Groups``."""
        self._run.make(Path(node))
        self._run.write(Path(node), "cpu.max", f"{round(period_us(cpu) * cpu)} {period_us(cpu)}")
        self._pass_on(Path(node))
        self._write_weight(Path(node), cpu * _WEIGHT_PER_CORE)

    def weigh_run(self, cpu: float) -> None:
        """See ``Groups``."""
        self._write_weight(_HERE, cpu * _WEIGHT_PER_CORE)

    def make_trial(self, path: Path) -> tuple[str, ...]:
        """See ``Groups``."""
        self._run.make(path)
        return (str(self._run.root / path / "cgroup.procs"),)

    def weigh(self, path: Path, cpu: float, node_cpu: float) -> None:
        """See ``Groups``: the whole node is the largest weight there is, for the finest steps."""
        self._write_weight(path, cpu / node_cpu * _MAX_WEIGHT)

    def used(self, path: Path) -> float:
        """See ``Groups``."""
        lines = self._run.read(path, "cpu.stat").splitlines()
        return int(dict(line.split() for line in lines)["usage_usec"]) / 1e6

    def pids(self, path: Path) -> set[int]:
        """See ``Groups``."""
        return self._run.pids(path)

    def kill(self, path: Path) -> None:
        """See ``Groups``: one write where the kernel knows it (5.14), else one by one."""
        if (self._run.root / path / "cgroup.kill").exists():
            self._run.write(path, "cgroup.kill", "1")
        else:
            kill_all(self, path)

    def drop(self, path: Path) -> bool:
        """See ``Groups``."""
        return self._run.drop(path)

    def _pass_on(self, path: Path) -> None:
        _require_cpu(self._run, path)
        self._run.write(path, _SUBTREE, "+cpu")

    def _write_weight(self, path: Path, weight: float) -> None:
        self._run.write(path, _WEIGHT, str(min(_MAX_WEIGHT, max(1, round(weight)))))


def _require_cpu(folder: GroupFolder, path: Path) -> None:
    if "cpu" not in folder.read(path, _CONTROLLERS).split():
        msg = f"{folder.root / path} has no cpu controller"
        raise SharesError(msg)


def groups_v2(run: str, mounts: Mounts) -> list[GroupsV2]:
    """Return the groups of ``run`` in each place where they might be allowed, the innermost first.

    Raises:
        SharesError: version 2 is not mounted.
    """
    if not (places := mounts.v2()):
        msg = "no cgroup v2 hierarchy is mounted"
        raise SharesError(msg)
    return [GroupsV2(GroupFolder(place / f"specon-{run}")) for place in places]
