"""All that a cluster could leave behind on its host, to be compared before and after."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.cluster.commands import run
from tests.cluster.layout import CGROUP
from tests.cluster.node_cgroups import HIERARCHIES
from tests.cluster.processes import start_time

HostState = Mapping[str, frozenset[str]]

# Cgroups of this prefix are those of local runs (`specon run`), which may come and go meanwhile.
LOCAL_RUNS: Final = "specon-"
# It changes by itself.
RESTLESS_SETTING: Final = "kernel/ns_last_pid"
READABLE_AND_WRITABLE: Final = 0o600


def host_state() -> HostState:
    """Mounts, cgroups, network devices, routes, rules, kernel settings and processes in namespaces."""
    return {
        "mounts": frozenset(line.split(" ", 4)[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "cgroups": frozenset(_cgroups()),
        "links": frozenset(path.name for path in Path("/sys/class/net").iterdir()),
        "addresses": frozenset(_lines("ip", "-brief", "address")),
        "routes": frozenset(_lines("ip", "route", "show", "table", "all")),
        "rules": frozenset(_lines("ip", "rule")),
        "packet filters": frozenset(_lines("nft", "list", "ruleset")),
        "kernel settings": frozenset(_kernel_settings()),
        "processes": frozenset(_processes()),
        "network namespaces": frozenset(_lines("ip", "netns")),
    }


def differences(before: HostState, after: HostState) -> list[str]:
    """What is there only before or only after, a line each."""
    found = []
    for kind in before:
        found += [f"{kind}: gone: {item}" for item in sorted(before[kind] - after[kind])]
        found += [f"{kind}: left behind: {item}" for item in sorted(after[kind] - before[kind])]
    return found


def _lines(*command: str) -> list[str]:
    return [line.strip() for line in run(*command).splitlines()]


def _cgroups() -> Iterator[str]:
    """Every group that a cluster could make, at the top of a hierarchy or below its own; others have theirs, too."""
    for hierarchy in HIERARCHIES.iterdir():
        for top in hierarchy.iterdir():
            if top.is_dir() and not top.name.startswith(LOCAL_RUNS):
                yield str(top)
        yield from (folder for folder, _, _ in os.walk(hierarchy / CGROUP))


def _kernel_settings() -> Iterator[str]:
    root = Path("/proc/sys")
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names):
            name = str(path.relative_to(root))
            mode = path.stat().st_mode & READABLE_AND_WRITABLE
            if name != RESTLESS_SETTING and mode == READABLE_AND_WRITABLE:
                yield f"{name} = {_read(path)}"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return "unreadable"


def _processes() -> Iterator[str]:
    """Every process of a machine made of namespaces, and what holds such a machine."""
    host = Path("/proc/self/ns/pid").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        started, name = start_time(int(folder.name)), _read(folder / "comm")
        with contextlib.suppress(OSError):
            if started and (name == "unshare" or (folder / "ns/pid").readlink() != host):
                yield f"{folder.name} {name} {started}"
