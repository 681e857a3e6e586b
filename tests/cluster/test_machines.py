"""A machine is cut off from its host, and is gone at once when it is lost."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.commands import ClusterError
from tests.cluster.machine import Machine
from tests.cluster.obstacles import obstacles
from tests.cluster.processes import is_alive, wait_until

pytestmark = pytest.mark.cluster


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if os.environ.get("KUBECONFIG") or obstacles():
        pytest.skip(f"makes a machine of its own: {obstacles() or 'not done where KUBECONFIG names a cluster'}")
    machine = Machine("lonely", tmp_path / "machine", tmp_path / "logs", cpu=0)
    machine.boot()
    yield machine
    machine.lose()


def test_a_machine_has_its_own_name_processes_network_and_core(machine: Machine) -> None:
    assert machine.run("hostname").strip() == "lonely"
    assert machine.run("sh", "-c", "cat /proc/1/cmdline").count("machine_init") == 1
    assert [line.split(":")[1].strip() for line in machine.run("ip", "-oneline", "link").splitlines()] == ["lo"]
    assert machine.run("cat", "/sys/devices/system/cpu/online").strip() == "0"


def test_what_a_machine_writes_to_settings_and_folders_does_not_reach_the_host(machine: Machine) -> None:
    before = Path("/proc/sys/kernel/panic").read_text()
    machine.run("sh", "-c", "echo 77 >/proc/sys/kernel/panic; touch /etc/only-here /run/only-here /var/log/only-here")
    assert machine.run("cat", "/proc/sys/kernel/panic").strip() == "77"
    assert Path("/proc/sys/kernel/panic").read_text() == before
    assert not [folder for folder in ("/etc", "/run", "/var/log") if Path(folder, "only-here").exists()]


def test_a_component_is_known_by_name_and_writes_a_log(machine: Machine) -> None:
    machine.start("talker", ["sh", "-c", "echo $WORD; exec sleep 1000"], WORD="hello")
    wait_until(lambda: "hello" in (machine.logs / "lonely-talker.log").read_text(), "it has spoken", 10)
    assert machine.components == {"talker": True}
    with pytest.raises(ClusterError, match="runs already"):
        machine.start("talker", ["sleep", "1"])
    machine.kill("talker")
    assert machine.components == {"talker": False}


def test_losing_a_machine_ends_all_that_runs_in_it(machine: Machine) -> None:
    machine.start("sleeper", ["sleep", "1000"])
    component = machine.folder / "components" / "sleeper"
    assert is_alive(component)
    machine.lose()
    assert is_alive(component) is None
    assert not machine.is_running
    with pytest.raises(ClusterError, match="not running"):
        machine.run("true")
