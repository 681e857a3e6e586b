"""A command is watched with all that it starts, its memory can be bounded, and nothing of it is left."""

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchmarks.own_machine.bounds import BoundError, MemoryBound
from benchmarks.own_machine.watching import watched
from controllers.worlds.local.shares.cgroup_files import Mounts

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        held = bytearray(b"x" * 80_000_000)
        open("daemon", "w").write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
while not os.path.exists("daemon") or not open("daemon").read():
    time.sleep(0.01)
time.sleep(0.5)
sys.exit(3)
"""
TITLED = """
import os, time
if os.fork() == 0:
    os.execve("/bin/sleep", ["sleep", "61"], {})  # as one that writes its title over its environment
time.sleep(0.5)
"""
GREEDY = "held = bytearray(b'x' * 200_000_000)"
MODEST = "held = bytearray(b'x' * 20_000_000)"


def test_a_command_is_watched_with_what_left_its_tree_and_that_is_ended(tmp_path: Path) -> None:
    found = watched([sys.executable, "-c", DAEMON], tmp_path, os.environ, tmp_path / "log", every_s=0.05)
    assert found.exit_code == 3
    assert 0.5 < found.seconds < 20
    assert found.peak > 80_000_000
    assert abs(found.began - time.time()) < 60
    assert not psutil.pid_exists(int((tmp_path / "daemon").read_text()))


def test_a_command_that_does_not_end_in_time_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "sleep 62 & echo $! > child; wait"]
    found = watched(command, tmp_path, os.environ, tmp_path / "log", most_s=0.5, every_s=0.05)
    assert found.exit_code == -9
    assert found.seconds < 20
    assert not psutil.pid_exists(int((tmp_path / "child").read_text()))


def test_what_hides_its_environment_is_ended_with_its_session(tmp_path: Path) -> None:
    before = {process.pid for process in psutil.process_iter()}
    found = watched([sys.executable, "-c", TITLED], tmp_path, os.environ, tmp_path / "log", every_s=0.05)
    assert found.exit_code == 0
    started = [process for process in psutil.process_iter(["cmdline"]) if process.pid not in before]
    assert not [process for process in started if process.info["cmdline"] == ["sleep", "61"]]


def test_what_needs_more_memory_than_the_bound_is_killed_and_the_group_goes() -> None:
    name = f"own-machine-test-{os.getpid()}"
    try:
        with MemoryBound(name, 100_000_000) as bound:
            codes = [psutil.Popen(bound.joined([sys.executable, "-c", code])).wait() for code in (MODEST, GREEDY)]
            groups = list(Path("/sys/fs/cgroup").rglob(name))
    except BoundError as error:
        pytest.skip(f"no control group for memory here: {error}")
    assert codes == [0, -9]
    assert groups
    assert not any(group.exists() for group in groups)


def test_where_no_control_group_is_mounted_that_is_said() -> None:
    with (
        pytest.raises(BoundError, match="no control group can bound memory here: none is mounted"),
        MemoryBound("own-machine-test", 10**9, Mounts("", "0::/\n")),
    ):
        pass


def test_a_group_that_passes_no_memory_on_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("cpu pids\n")
    mounts = Mounts(f"cgroup2 {tmp_path} cgroup2 rw 0 0\n", "0::/\n")
    with pytest.raises(BoundError, match="none is mounted"), MemoryBound("own-machine-test", 10**9, mounts):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["cgroup.subtree_control"]
