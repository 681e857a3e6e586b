"""What psutil and ``ps`` tell of processes is what Linux tells by files."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from controllers.worlds.local.processes import linux_processes, other_processes
from controllers.worlds.local.processes.proctree import CpuAccount
from mlflow_hooks import linux_system, other_system, system
from mlflow_hooks.cpu_use import WaitMeter

ROOT = Path(__file__).resolve().parents[2]
BURNS = "import time\nwhile time.process_time() < 0.3: pass\n"
Start = Callable[..., "subprocess.Popen[str]"]


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a command that says so with a line; kill its session at the end."""
    started = []

    def start_one(*command: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start_one
    for process in started:
        for pid in other_processes.strays(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def test_a_tree_is_told_alike_by_files_and_without_them(start: Start) -> None:
    shell = start("sh", "-c", "sleep 1000 & sleep 1001 & echo ready; wait").pid
    assert wait_for(lambda: linux_processes.command(shell)[:1] == ("sh",) and len(linux_processes.tree(shell)) == 3)
    # A look at all processes is used for a while.
    assert wait_for(lambda: sorted(other_processes.tree(shell)) == sorted(linux_processes.tree(shell)))
    assert sorted(other_processes.children(shell)) == sorted(linux_processes.children(shell))
    for tells_one in (
        linux_processes.alive,
        linux_processes.command,
        linux_processes.number_inside,
        linux_processes.program,
        linux_processes.session,
    ):
        assert tells_one(shell) == getattr(other_processes, tells_one.__name__)(shell)


def test_of_a_process_that_is_gone_nothing_is_told() -> None:
    with subprocess.Popen(["/usr/bin/true"]) as process:
        process.wait()
    gone = process.pid
    assert not other_processes.alive(gone)
    assert other_processes.tree(gone) == other_processes.children(gone) == []
    assert other_processes.open_files(gone) == []
    assert other_processes.command(gone) == ()
    assert other_processes.program(gone) == ""
    assert other_processes.session(gone) is other_system.start_time(gone) is None
    assert other_processes.cpu_seconds([gone]) == 0.0
    assert not other_processes.catches(gone, signal.SIGTERM)


@pytest.mark.parametrize(("script", "code"), [("exit 75", 75), ("kill -9 $$", 137)])
def test_an_exit_code_may_be_asked_for_again_until_the_child_is_buried(script: str, code: int) -> None:
    child = subprocess.Popen(["/bin/sh", "-c", script])
    assert wait_for(lambda: other_processes.has_ended(child.pid))
    assert [other_processes.exit_code(child.pid) for _ in range(2)] == [code, code]
    assert other_processes.has_ended(child.pid)
    other_processes.bury(child.pid)
    assert other_processes.exit_code(child.pid) is None
    child.returncode = code  # so that nobody waits for it again


def test_a_child_that_lives_has_no_exit_code(start: Start) -> None:
    child = start("sh", "-c", "echo ready; sleep 1000").pid
    assert not other_processes.has_ended(child)
    assert other_processes.exit_code(child) is None


def test_a_child_that_nobody_has_asked_about_is_buried_too() -> None:
    child = subprocess.Popen(["/usr/bin/true"])
    assert wait_for(lambda: other_processes.has_ended(child.pid))
    other_processes.bury(child.pid)
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, 0)
    child.returncode = 0  # so that nobody waits for it again


HANDLER = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: 0); print('ready', flush=True); time.sleep(99)"


def test_ps_tells_who_catches_a_signal(start: Start) -> None:
    catching = start(sys.executable, "-c", HANDLER).pid
    plain = start(sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(99)").pid
    assert other_processes.catches(catching, signal.SIGTERM)
    assert not other_processes.catches(catching, signal.SIGUSR1)
    assert not other_processes.catches(plain, signal.SIGTERM)


def test_where_ps_does_not_tell_programs_are_taken_to_catch_a_signal_and_shells_are_not(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = start(sys.executable, "-c", HANDLER).pid
    shell = start("sh", "-c", "echo ready; sleep 1000; true").pid
    monkeypatch.setenv("PATH", str(tmp_path))
    assert other_processes.catches(program, signal.SIGTERM)
    assert not other_processes.catches(shell, signal.SIGTERM)


def test_an_orphan_is_found_by_the_session_that_it_was_born_in(start: Start) -> None:
    shell = start("sh", "-c", "(sleep 1000 & echo $! > /dev/null); echo ready; exec sleep 1001").pid
    assert wait_for(lambda: other_processes.program(shell) == "sleep")
    assert wait_for(lambda: other_processes.tree(shell) == [shell])
    (orphan,) = {*other_processes.strays(shell)} - {shell}
    assert other_processes.command(orphan) == ("sleep", "1000")


@pytest.mark.parametrize("parts", [linux_processes.cpu_parts, other_processes.cpu_parts])
def test_what_a_tree_has_used_stays_when_its_processes_are_gone(
    parts: Callable[[Iterable[int]], Mapping[tuple[int, int], float]],
) -> None:
    used = CpuAccount(parts)
    with subprocess.Popen([sys.executable, "-c", f"{BURNS}input()"], stdin=subprocess.PIPE) as child:
        assert wait_for(lambda: used.seconds([child.pid]) >= 0.29)
        before = used.seconds([child.pid])
        child.communicate(b"\n")
    assert used.seconds([child.pid]) == used.seconds([]) >= before


def test_a_second_process_of_a_tree_counts_beside_the_one_that_is_gone() -> None:
    used = CpuAccount(other_processes.cpu_parts)
    for turn in (1, 2):
        with subprocess.Popen([sys.executable, "-c", f"{BURNS}input()"], stdin=subprocess.PIPE) as child:
            assert wait_for(lambda turn=turn, pid=child.pid: used.seconds([pid]) >= 0.29 * turn)  # type: ignore[misc]
            child.communicate(b"\n")


def test_a_process_and_its_controller_mean_the_same_by_when_it_began(start: Start) -> None:
    says = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import os; from mlflow_hooks.other_system import start_time; "
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"{says}print(start_time(os.getpid()), flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert int(child.stdout.readline()) == other_system.start_time(child.pid)
        time.sleep(0.02)
        other = start("sh", "-c", "echo ready; sleep 1000").pid
        assert other_system.start_time(other) != other_system.start_time(child.pid)
        child.communicate("\n")
    assert other_system.start_time(child.pid) is None


def test_the_machine_is_the_same_for_two_processes() -> None:
    says = "from controllers.worlds.local.processes.other_processes import here; print(*here(), sep='\\n')"
    told = subprocess.run([sys.executable, "-c", says], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert tuple(told.splitlines()) == other_processes.here()
    assert all(other_processes.here())


def test_files_that_are_open_are_told(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w"):
        assert tmp_path / "log" in other_processes.open_files(os.getpid())


def test_children_that_compute_count_and_nobody_tells_of_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", f"{BURNS}input()"], stdin=subprocess.PIPE) as child:
        assert wait_for(lambda: other_system.cpu_of_children(os.getpid()) >= 0.29)
        child.communicate(b"\n")
    assert list(other_system.waits_of(os.getpid())) == []
    monkeypatch.setattr("mlflow_hooks.cpu_use.waits_of", other_system.waits_of)
    assert WaitMeter().seconds() is None


@pytest.mark.parametrize("interface", ["lo", "no-such-interface"])
def test_addresses_of_interfaces_are_told_alike(interface: str) -> None:
    assert other_system.address_of(interface) == linux_system.address_of(interface)


def test_all_cores_count_where_no_process_can_be_kept_to_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert system.cores_here() == os.cpu_count()
