"""The disk is full under what a run keeps: its trials train on, and the run goes on once there is room."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from controllers.core.errors import SweepInterrupted
from controllers.local_run.order import LocalSettings
from controllers.local_run.run import LocalRun, run_locally
from controllers.policies.registry import parse_policy
from hera_specon.display.screens import PlainScreen
from tests.cases.mlflow_at_the_end import STEPS, workflow
from tests.io_faults.faulty_disk import FaultyDisk
from tests.mlflow_hooks.hook_jobs import Server

pytestmark = pytest.mark.slow


@dataclass
class FullDisk(FaultyDisk):
    """A disk that has no room for one file after the other; ``made_room`` is called once that has been told."""

    names: list[str] = field(default_factory=list)
    made_room: Callable[[], object] = lambda: None
    said: list[str] = field(default_factory=list)
    begun: bool = False

    def ask(self, what: str, path: Path, *, shortens: bool = False) -> bool:
        del what, shortens
        if self.begun and self.names and path.name.startswith(self.names[0]):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return False

    def say(self, line: str) -> None:
        self.said.append(line)
        self.begun = self.begun or "end.t000 succeeded" in line
        if "the disk is full" in line:
            assert self.names[0] in line
            self.names.pop(0)
            self.made_room()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mlflow_server: Server) -> Iterator[FullDisk]:
    """The disk under a user's empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_server.uri)
    disk = FullDisk(tmp_path / ".specon" / "runs")
    yield disk
    print("\n".join(disk.said))  # noqa: T201 - for the reader who asks why it failed


def run(disk: FullDisk) -> LocalRun:
    settings = LocalSettings(nodes=1, cpus_per_node=0.5, jobs=1, state_dir=Path(".specon"))
    with disk.mounted():
        screen = PlainScreen(disk.say)
        return run_locally(workflow("", 0, 1), Path("sweep.py"), [parse_policy("default")], settings, screen)


def trains(process: psutil.Process) -> bool:
    try:
        return any("mlflow_at_the_end" in word for word in process.cmdline())
    except psutil.Error:
        return False


def finals(done: LocalRun) -> list[tuple[float | None, int]]:
    return [(one.final_metric, one.attempts) for one in done.results[0].trials]


def test_a_run_waits_for_room_under_each_file_that_it_keeps(disk: FullDisk) -> None:
    # Those of "end-1-" are the folders of its trials.
    disk.names, disk.begun = ["end-1-", "ledger.json", "engine.json", "clock.json", "result.json"], True
    done = run(disk)
    assert finals(done) == [(1 / STEPS, 1), (1 + 1 / STEPS, 1)]
    assert not disk.names
    full = [line for line in disk.said if "the disk is full" in line]
    assert len(full) == 5, "each is told once"
    assert sum("has room again" in line for line in disk.said) == len(full)


def test_a_run_that_waits_for_room_can_be_interrupted_and_goes_on_later(disk: FullDisk) -> None:
    disk.names = ["ledger.json", "ledger.json"]
    disk.made_room = lambda: os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(SweepInterrupted, match="while the disk was full"):
        run(disk)
    assert not [child for child in psutil.Process().children(recursive=True) if trains(child)]
    disk.names.clear()
    assert [value for value, _ in finals(run(disk))] == [1 / STEPS, 1 + 1 / STEPS]
