"""Control groups as files: where they are mounted, and how versions 1 and 2 write quotas and weights."""

import errno
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controllers.worlds.local.shares.base import SharesError
from controllers.worlds.local.shares.cgroup import kill_all, period_us


class GroupFolder:
    """A control group and the ones below it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def make(self, path: Path) -> None:
        """Create a group."""
        (self.root / path).mkdir()

    def write(self, path: Path, name: str, value: str) -> None:
        """Change a setting of a group."""
        (self.root / path / name).write_text(value)

    def read(self, path: Path, name: str) -> str:
        """Return a setting of a group."""
        return (self.root / path / name).read_text()

    def pids(self, path: Path) -> set[int]:
        """Return the processes in a group and below it."""
        return {int(pid) for group in self._below(self.root / path) for pid in _words_if_there(group / "cgroup.procs")}

    def drop(self, path: Path) -> bool:
        """Remove a group and the ones below it; False while one is in use."""
        try:
            for group in self._below(self.root / path):
                self._drop_one(group)
        except OSError as error:
            if error.errno in {errno.EBUSY, errno.ENOTEMPTY}:
                return False
            raise
        return True

    def _drop_one(self, group: Path) -> None:
        group.rmdir()

    def _below(self, group: Path) -> Iterator[Path]:
        """Yield the groups below and then the group itself, if it is there."""
        if group.is_dir():
            for child in sorted(group.iterdir()):
                if child.is_dir():
                    yield from self._below(child)
            yield group


def figures(file: Path) -> dict[str, int]:
    """Return the numbers of a file of the kernel with a name and a number in each line; none where it is not there."""
    try:
        words = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return {}
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal()}  # noqa: PLR2004 - a name and a number


def _words_if_there(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class Mounts:
    """What ``/proc/mounts`` and ``/proc/self/cgroup`` said."""

    mounts: str
    own: str

    @classmethod
    def here(cls) -> "Mounts":
        """Read them."""
        try:
            return cls(Path("/proc/mounts").read_text(), Path("/proc/self/cgroup").read_text())
        except FileNotFoundError:
            return cls("", "")  # no Linux, which alone has control groups

    def v1(self, controller: str) -> Path | None:
        """Return this process's group in the version 1 hierarchy of ``controller``, None without one."""
        for place, kind, options in self._mounted():
            if kind == "cgroup" and controller in options:
                return _inside(place, self._own_path(controller))
        return None

    def v2(self) -> tuple[Path, ...]:
        """Return this process's version 2 group and the groups above it, as far up as is mounted."""
        for place, kind, _ in self._mounted():
            if kind == "cgroup2":
                own = _inside(place, self._own_path(""))
                return (own, *(above for above in own.parents if above.is_relative_to(place)))
        return ()

    def _mounted(self) -> Iterator[tuple[Path, str, list[str]]]:
        for line in self.mounts.splitlines():
            _, place, kind, options, *_ = line.split()
            # The kernel writes blanks in paths as octal escapes.
            yield Path(place.encode().decode("unicode_escape")), kind, options.split(",")

    def _own_path(self, controller: str) -> str:
        for line in self.own.splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return path
        return "/"


def _inside(mount: Path, path: str) -> Path:
    """Return ``path`` below ``mount``; in a container it may name what only the host can see."""
    own = mount / path.lstrip("/")
    return own if own.is_dir() and ".." not in own.parts else mount


MOST_PIDS: Final = 4096
"""Processes and threads of a node: a trial that forks without end fills its own node, not the machine."""
_PIDS_MAX: Final = "pids.max"
_SHARES_PER_CORE: Final = 1024
_MIN_SHARES, _MAX_SHARES = 2, 262_144


class GroupsV1:
    """See ``Groups``. ``cpu`` and ``cpuacct`` are the run's groups; the same folder if mounted together.

    ``bounds`` are the run's groups that bound its processes (``pids``) and its memory, where there are such.
    """

    description = (
        "cgroup v1: the kernel enforces each node's quota and the trials' weights; "
        "on a node of several cores weights count where trials want the same core"
    )

    def __init__(self, cpu: GroupFolder, cpuacct: GroupFolder, bounds: Mapping[str, GroupFolder] | None = None) -> None:
        self._cpu, self._cpuacct, self._bounds = cpu, cpuacct, dict(bounds or {})
        self._folders = [cpu] if cpu.root.resolve() == cpuacct.root.resolve() else [cpu, cpuacct]

    def make_run(self) -> None:
        """See ``Groups``."""
        self._make(Path())
        for controller, folder in list(self._bounds.items()):
            # Shares count for more than a bound, for which another hierarchy has to be writable.
            try:
                folder.make(Path())
            except OSError:
                del self._bounds[controller]
            else:
                self._folders.append(folder)

    def make_node(self, node: str, cpu: float) -> None:
        """See ``Groups``."""
        self._make(Path(node))
        self._cpu.write(Path(node), "cpu.cfs_period_us", str(period_us(cpu)))
        self._cpu.write(Path(node), "cpu.cfs_quota_us", str(round(period_us(cpu) * cpu)))
        if (pids := self._bounds.get("pids")) is not None:
            pids.write(Path(node), _PIDS_MAX, str(MOST_PIDS))
        self._write_shares(Path(node), cpu)

    def weigh_run(self, cpu: float) -> None:
        """See ``Groups``."""
        self._write_shares(Path(), cpu)

    def make_trial(self, path: Path) -> tuple[str, ...]:
        """See ``Groups``."""
        self._make(path)
        return tuple(str(folder.root / path / "cgroup.procs") for folder in self._folders)

    @property
    def limits_memory(self) -> bool:
        """See ``Groups``."""
        return "memory" in self._bounds

    def limit_memory(self, path: Path, most: float) -> None:
        """See ``Groups``."""
        self._bounds["memory"].write(path, "memory.limit_in_bytes", str(int(most)))

    def weigh(self, path: Path, cpu: float, node_cpu: float) -> None:  # noqa: ARG002 - version 2 needs it
        """See ``Groups``."""
        self._write_shares(path, cpu)

    def used(self, path: Path) -> float:
        """See ``Groups``."""
        return int(self._cpuacct.read(path, "cpuacct.usage")) / 1e9

    def memory(self, path: Path) -> float | None:
        """See ``Groups``."""
        bounds = self._bounds.get("memory")
        if bounds is None:
            return None
        held = figures(bounds.root / path / "memory.stat")
        return float(held.get("total_rss", 0) + held.get("total_shmem", 0))

    def memory_kills(self, path: Path) -> int:
        """See ``Groups``."""
        bounds = self._bounds.get("memory")
        return 0 if bounds is None else figures(bounds.root / path / "memory.oom_control").get("oom_kill", 0)

    def pids(self, path: Path) -> set[int]:
        """See ``Groups``."""
        return {pid for folder in self._every for pid in folder.pids(path)}

    def kill(self, path: Path) -> None:
        """See ``Groups``."""
        kill_all(self, path)

    def drop(self, path: Path) -> bool:
        """See ``Groups``."""
        dropped = [folder.drop(path) for folder in self._every]
        return all(dropped)

    @property
    def _every(self) -> list[GroupFolder]:
        """Where there may be groups: before this run's own are made, those of a killed run of the same name."""
        return [*self._folders, *(folder for folder in self._bounds.values() if folder not in self._folders)]

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
    places = {controller: mounts.v1(controller) for controller in ("pids", "memory")}
    bounds = {name: GroupFolder(place / f"specon-{run}") for name, place in places.items() if place is not None}
    return GroupsV1(GroupFolder(cpu / f"specon-{run}"), GroupFolder(cpuacct / f"specon-{run}"), bounds)


_CONTROLLERS, _SUBTREE, _WEIGHT = "cgroup.controllers", "cgroup.subtree_control", "cpu.weight"
_BOUNDS: Final = {"memory", "pids"}
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
        there, passed_on = (parent.read(_HERE, name).split() for name in (_CONTROLLERS, _SUBTREE))
        wanted = [name for name in ("cpu", *sorted(_BOUNDS)) if name in there]
        try:
            if set(wanted) - set(passed_on):
                parent.write(_HERE, _SUBTREE, " ".join(f"+{name}" for name in wanted))
        except OSError:
            # The kernel refuses where processes are in the parent itself, unless it is the real root.
            if "cpu" not in passed_on:
                parent.write(_HERE, _SUBTREE, "+cpu")
        self._run.make(_HERE)
        self._pass_on(_HERE)

    def make_node(self, node: str, cpu: float) -> None:
        """See ``Groups``."""
        self._run.make(Path(node))
        self._run.write(Path(node), "cpu.max", f"{round(period_us(cpu) * cpu)} {period_us(cpu)}")
        if "pids" in self._run.read(Path(node), _CONTROLLERS).split():
            self._run.write(Path(node), _PIDS_MAX, str(MOST_PIDS))
        self._pass_on(Path(node))
        self._write_weight(Path(node), cpu * _WEIGHT_PER_CORE)

    def weigh_run(self, cpu: float) -> None:
        """See ``Groups``."""
        self._write_weight(_HERE, cpu * _WEIGHT_PER_CORE)

    def make_trial(self, path: Path) -> tuple[str, ...]:
        """See ``Groups``."""
        self._run.make(path)
        return (str(self._run.root / path / "cgroup.procs"),)

    @property
    def limits_memory(self) -> bool:
        """See ``Groups``."""
        return "memory" in self._run.read(_HERE, _SUBTREE)

    def limit_memory(self, path: Path, most: float) -> None:
        """See ``Groups``."""
        self._run.write(path, "memory.max", str(int(most)))

    def weigh(self, path: Path, cpu: float, node_cpu: float) -> None:
        """See ``Groups``: the whole node is the largest weight there is, for the finest steps."""
        self._write_weight(path, cpu / node_cpu * _MAX_WEIGHT)

    def used(self, path: Path) -> float:
        """See ``Groups``."""
        lines = self._run.read(path, "cpu.stat").splitlines()
        return int(dict(line.split() for line in lines)["usage_usec"]) / 1e6

    def memory(self, path: Path) -> float | None:
        """See ``Groups``."""
        held = figures(self._run.root / path / "memory.stat")
        return float(held["anon"] + held.get("shmem", 0)) if "anon" in held else None

    def memory_kills(self, path: Path) -> int:
        """See ``Groups``."""
        return figures(self._run.root / path / "memory.events").get("oom_kill", 0)

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
        bounds = sorted(_BOUNDS & set(self._run.read(path, _CONTROLLERS).split()))
        self._run.write(path, _SUBTREE, " ".join(f"+{controller}" for controller in ("cpu", *bounds)))

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
