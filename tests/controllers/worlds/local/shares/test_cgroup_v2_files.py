"""Version 2 on a folder that behaves as the kernel's would: no machine of ours has its cpu controller."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.worlds.local.shares import SharesError
from controllers.worlds.local.shares.cgroup import CgroupShares, period_us
from controllers.worlds.local.shares.cgroup_files import MOST_PIDS, GroupFolder, GroupsV2, Mounts, groups_v2


class FakeKernel(GroupFolder):
    """Creates the files of a group with it, and lets it go with them."""

    def __init__(self, root: Path, controllers: str = "cpu memory") -> None:
        super().__init__(root)
        self._controllers = controllers
        self.killed: list[Path] = []

    def make(self, path: Path) -> None:
        super().make(path)
        group = self.root / path
        above = (group.parent / "cgroup.subtree_control").read_text()
        (group / "cgroup.controllers").write_text(self._controllers if "cpu" in above else "")
        for name in ("cgroup.subtree_control", "cgroup.procs", "cgroup.kill"):
            (group / name).write_text("")
        (group / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")

    def write(self, path: Path, name: str, value: str) -> None:
        super().write(path, name, value)
        if name == "cgroup.kill":
            self.killed.append(path)

    def _drop_one(self, group: Path) -> None:
        shutil.rmtree(group)


@pytest.fixture
def delegated(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.subtree_control").write_text("")
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    return tmp_path


@pytest.fixture
def kernel(delegated: Path) -> FakeKernel:
    return FakeKernel(delegated / "specon-run")


@pytest.fixture
def v2(kernel: FakeKernel) -> Iterator[CgroupShares]:
    shares = CgroupShares(GroupsV2(kernel))
    yield shares
    shares.close()


def test_the_cpu_controller_is_passed_down_to_the_trials_and_no_further(v2: CgroupShares, delegated: Path) -> None:
    v2.add_node("node", 0.5)
    (join,) = v2.add("a", "node", 0.25)
    for group in (delegated, delegated / "specon-run", delegated / "specon-run" / "node"):
        assert (group / "cgroup.subtree_control").read_text() == "+cpu +memory"
    leaf = delegated / "specon-run" / "node" / "a"
    # Processes may only be where no controller is passed on.
    assert (leaf / "cgroup.subtree_control").read_text() == ""
    assert join == str(leaf / "cgroup.procs")


def test_quotas_weights_and_use_are_read_and_written_in_the_kernels_units(v2: CgroupShares, delegated: Path) -> None:
    v2.add_node("node", 0.5)
    v2.add_node("other", 1.5)
    v2.add("a", "node", 0.125)
    run = delegated / "specon-run"
    assert (run / "node" / "cpu.max").read_text() == "250000 500000"
    assert (run / "other" / "cpu.max").read_text() == f"{round(1.5 * period_us(1.5))} {period_us(1.5)}"
    assert (run / "cpu.weight").read_text() == "200"
    assert (run / "node" / "a" / "cpu.weight").read_text() == "2500"
    v2.resize("a", 0.5)
    assert (run / "node" / "a" / "cpu.weight").read_text() == "10000"
    v2.resize("a", 0.00001)
    assert (run / "node" / "a" / "cpu.weight").read_text() == "1"
    assert v2.used("a") == v2.node_used("node") == 2.5


def test_killing_is_one_write_and_closing_removes_the_run(
    v2: CgroupShares, kernel: FakeKernel, delegated: Path
) -> None:
    v2.add_node("node", 0.5)
    v2.add("a", "node", 0.5)
    kernel.killed.clear()
    v2.kill("a")
    assert kernel.killed == [Path("node/a")]
    v2.close()
    assert not (delegated / "specon-run").exists()


def test_a_place_without_the_cpu_controller_is_refused_and_left_clean(delegated: Path) -> None:
    with pytest.raises(SharesError, match="no cpu controller"):
        CgroupShares(GroupsV2(FakeKernel(delegated / "specon-run", controllers="memory pids")))
    assert not (delegated / "specon-run").exists()


def test_a_machine_that_has_no_cpu_controller_to_pass_on_is_told_apart(delegated: Path) -> None:
    (delegated / "cgroup.controllers").write_text("memory")
    with pytest.raises(SharesError, match=f"{delegated} has no cpu controller"):
        CgroupShares(GroupsV2(FakeKernel(delegated / "specon-run")))


def test_what_a_killed_run_left_is_removed_first(delegated: Path) -> None:
    kernel = FakeKernel(delegated / "specon-run")
    first = CgroupShares(GroupsV2(kernel))
    first.add_node("node", 0.5)
    kernel.killed.clear()
    second = CgroupShares(GroupsV2(kernel))
    assert kernel.killed[0] == Path()
    second.add_node("node", 0.5)


def test_every_group_from_ones_own_up_to_the_mount_is_a_candidate(tmp_path: Path) -> None:
    (tmp_path / "user" / "app").mkdir(parents=True)
    found = groups_v2("run", Mounts(f"cgroup2 {tmp_path} cgroup2 rw 0 0\n", "0::/user/app\n"))
    expected = [tmp_path / "user" / "app", tmp_path / "user", tmp_path]
    assert [groups._run.root.parent for groups in found] == expected


@pytest.mark.parametrize(("cpu", "expected"), [(0.1, 1_000_000), (0.5, 500_000), (1.0, 250_000), (8.0, 100_000)])
def test_a_period_is_long_enough_for_weights_to_show(cpu: float, expected: int) -> None:
    assert period_us(cpu) == expected


def test_a_node_has_only_so_many_processes_where_the_machine_counts_them(delegated: Path) -> None:
    (delegated / "cgroup.controllers").write_text("cpu memory pids")
    (delegated / "cgroup.subtree_control").write_text("cpu pids")
    shares = CgroupShares(GroupsV2(FakeKernel(delegated / "specon-run", controllers="cpu memory pids")))
    shares.add_node("node", 0.5)
    shares.add("a", "node", 0.25)
    assert (delegated / "specon-run" / "node" / "pids.max").read_text() == str(MOST_PIDS)
    assert (delegated / "specon-run" / "node" / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert not (delegated / "specon-run" / "node" / "a" / "pids.max").exists()
    shares.close()


def test_a_trials_memory_is_limited_where_the_kernel_counts_it(v2: CgroupShares, delegated: Path) -> None:
    assert v2.limits_memory
    v2.add_node("node", 0.5)
    v2.add("a", "node", 0.25)
    v2.limit_memory("a", 2.0**20)
    assert (delegated / "specon-run" / "node" / "a" / "memory.max").read_text() == str(2**20)
