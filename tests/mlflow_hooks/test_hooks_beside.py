"""A large checkpoint is copied at the step and written by a thread: nobody counts on it before the disk has it."""

import errno
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mlflow_hooks import MigrationExit, TrialSession, checkpoints, linux_system, saving, trial
from mlflow_hooks.checkpoints import Checkpoints
from mlflow_hooks.fence import Fence
from mlflow_hooks.journal import Journal
from mlflow_hooks.points import Point

pytestmark = pytest.mark.usefixtures("in_this_process")


class Disk:
    """Takes a copy in a thread only once it is let; ``fails`` tells with what it fails instead, one after another."""

    def __init__(self) -> None:
        self.asked, self.free = threading.Event(), threading.Event()
        self.fails: list[Exception] = []
        self.copy_fails: list[Exception] = []
        self.wrote_in: list[str] = []

    def write(self, path: Path, value: list[int]) -> None:
        self.wrote_in.append(threading.current_thread().name)
        if self.fails:
            raise self.fails.pop(0)
        if threading.current_thread() is not threading.main_thread():
            self.asked.set()
            assert self.free.wait(20)
        path.write_text(json.dumps(value))


class Weights:
    """A list that the training changes in place."""

    def __init__(self, disk: Disk) -> None:
        self.value = [0]
        self.disk = disk
        self.given_back = 0

    def save(self, folder: Path) -> None:
        self.content_at_step().write(folder)

    def load(self, folder: Path) -> None:
        self.value[:] = json.loads((folder / "value.json").read_text())

    def content_at_step(self) -> "Held":
        return Held(self)


class Held:
    """What the weights are at a step."""

    nbytes = to_copy = 2**30

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.value = weights.value

    def copy(self) -> None:
        if self.weights.disk.copy_fails:
            raise self.weights.disk.copy_fails.pop(0)
        self.value = list(self.value)

    def give_back(self) -> None:
        self.weights.given_back += 1

    def write(self, folder: Path) -> None:
        self.weights.disk.write(folder / "value.json", self.value)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.free.set()


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """Say how much memory is left: at first more than enough. Saving may take all of the time."""
    monkeypatch.setattr(checkpoints, "SAVING_SHARE", math.inf)

    def left(nbytes: int | None) -> None:
        monkeypatch.setattr(saving, "memory_left", lambda: nbytes)

    left(2**40)
    return left


def kept(folder: Path) -> dict[int, list[int]]:
    """Return the weights of each checkpoint that is there, by the step that it goes on with."""
    there = sorted((folder / "s.a" / "checkpoints").glob("step-*"))
    return {int(one.name[5:]): json.loads((one / "weights" / "value.json").read_text()) for one in there}


def train(t: TrialSession, weights: Weights, step: int) -> None:
    weights.value[0] += step + 1
    t.log(loss=1.0)


def train_six(weights: Weights, asked_to_leave_in: int | None = None) -> None:
    with trial(checkpoint_every_s=0) as t:
        t.track(weights, "weights")
        for step in t.steps(6):
            train(t, weights, step)
            if step == asked_to_leave_in:
                os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.02)


def test_the_training_goes_on_and_what_is_kept_is_the_state_at_the_step(tmp_path: Path, disk: Disk) -> None:
    weights = Weights(disk)
    with trial(checkpoint_every_s=0) as t:
        t.track(weights, "weights")
        for step in t.steps(6):
            train(t, weights, step)
            if step == 3:
                assert disk.asked.is_set()
                assert kept(tmp_path) == {}
                assert not t.saved
                assert t._states.saved_step == 0
                disk.free.set()
                while not t._states.saved_step:
                    time.sleep(0.001)
                assert kept(tmp_path) == {1: [1]}
    assert kept(tmp_path)[6] == [21]
    assert disk.wrote_in[0] != threading.main_thread().name
    assert disk.wrote_in[-1] == threading.main_thread().name, "the last checkpoint has nothing to be written beside"


def test_one_is_written_at_a_time_and_none_is_due_meanwhile(disk: Disk) -> None:
    weights = Weights(disk)
    with trial(checkpoint_every_s=0) as t:
        t.track(weights, "weights")
        for step in t.steps(50):
            train(t, weights, step)
            # In the last step the disk is free, and what was begun may be written already.
            assert not t.saving_due or step in {0, 49}
            if step == 48:
                assert len(disk.wrote_in) == 1
                disk.free.set()
                while not t.saving_due:
                    time.sleep(0.001)


@pytest.mark.parametrize("end", ["asked to leave", "error", "interrupted"])
def test_a_trial_that_ends_waits_for_it(tmp_path: Path, disk: Disk, end: str) -> None:
    weights = Weights(disk)
    threading.Timer(0.3, disk.free.set).start()
    with suppress(MigrationExit, ZeroDivisionError, KeyboardInterrupt), trial(checkpoint_every_s=0) as t:
        t.track(weights, "weights")
        for step in t.steps(6):
            train(t, weights, step)
            if step == 2:
                assert kept(tmp_path) == {}
                if end == "asked to leave":
                    os.kill(os.getpid(), signal.SIGTERM)
                else:
                    raise ZeroDivisionError if end == "error" else KeyboardInterrupt
    assert kept(tmp_path) == ({1: [1], 3: [6]} if end == "asked to leave" else {1: [1]})


def test_who_leaves_before_the_next_one_fits_goes_on_from_the_one_that_was_being_written(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(saving.Saving, "fits", lambda *_: False)
    weights = Weights(disk)
    threading.Timer(0.3, disk.free.set).start()
    with pytest.raises(MigrationExit):
        train_six(weights, asked_to_leave_in=2)
    assert kept(tmp_path) == {1: [1]}
    assert "the next attempt goes on at step 1" in capsys.readouterr().err


def test_a_disk_that_fails_meanwhile_is_told_as_in_step_and_the_training_goes_on(
    tmp_path: Path, disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    disk.free.set()
    disk.fails = [OSError(errno.ENOSPC, "No space left on device")]
    weights = Weights(disk)
    with trial(checkpoint_every_s=0) as t:
        t.track(weights, "weights")
        for step in t.steps(6):
            train(t, weights, step)
            while step == 1 and not t.saving_due:
                time.sleep(0.001)
    told = capsys.readouterr().err
    assert told.count("no checkpoint at step 1 ([Errno 28] No space left on device); the one before stays") == 1
    assert kept(tmp_path)[6] == [21]
    assert not list((tmp_path / "s.a" / "checkpoints").glob(".writing-*"))


def test_a_mistake_in_what_is_written_fails_the_training_at_the_next_save(tmp_path: Path, disk: Disk) -> None:
    disk.free.set()
    disk.fails = [TypeError("cannot pickle it") for _ in range(3)]
    weights = Weights(disk)
    with pytest.raises(TypeError, match="cannot pickle it"):
        train_six(weights)
    assert weights.value[0] < sum(range(7)), "it trained on to its end"
    assert kept(tmp_path) == {}


@pytest.mark.parametrize("scarce", [2 * 2**30 - 1, 0])
def test_where_memory_is_short_it_is_written_in_step_and_that_is_said_once(
    tmp_path: Path, disk: Disk, memory: Callable[[int | None], None], scarce: int, capsys: pytest.CaptureFixture[str]
) -> None:
    memory(scarce)
    weights = Weights(disk)
    with trial(checkpoint_every_s=0) as t:
        t.track(weights, "weights")
        for step in t.steps(6):
            train(t, weights, step)
            assert len(kept(tmp_path)) == min(step, 2)
        assert set(disk.wrote_in) == {threading.main_thread().name}
        assert weights.given_back > 0
    assert capsys.readouterr().err.count("too few to copy a checkpoint of 1,073,741,824 bytes") == 1


@pytest.mark.parametrize("enough", [2 * 2**30, None])
def test_where_the_system_tells_of_no_shortage_it_is_written_beside(
    disk: Disk, memory: Callable[[int | None], None], enough: int | None
) -> None:
    memory(enough)
    disk.free.set()
    weights = Weights(disk)
    with trial(checkpoint_every_s=0) as t:
        t.track(weights, "weights")
        for step in t.steps(2):
            train(t, weights, step)
    assert disk.wrote_in[0] == "mlflow-hooks-checkpoint"


def test_a_copy_that_fails_is_written_in_step_and_that_is_said_once(
    tmp_path: Path, disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    disk.copy_fails = [RuntimeError("can't allocate memory")]
    weights = Weights(disk)
    with trial(checkpoint_every_s=0) as t:
        t.track(weights, "weights")
        for step in t.steps(6):
            train(t, weights, step)
            assert len(kept(tmp_path)) == min(step, 2)
    assert capsys.readouterr().err.count("no copy of a checkpoint can be made (can't allocate memory)") == 1


def test_a_small_checkpoint_is_written_in_step(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Held, "nbytes", saving.BESIDE_BYTES - 1000)
    weights = Weights(disk)
    with trial(checkpoint_every_s=0) as t:
        t.track(weights, "weights")
        for step in t.steps(4):
            train(t, weights, step)
            assert len(kept(tmp_path)) == min(step, 2)


def test_large_files_of_a_state_that_only_saves_reach_the_disk_beside_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "BESIDE_BYTES", 4)
    checked_in: list[str] = []
    checks = checkpoints._sha256

    def check(path: Path) -> str:
        checked_in.append(threading.current_thread().name)
        return checks(path)

    monkeypatch.setattr(checkpoints, "_sha256", check)

    class Own:
        def save(self, folder: Path) -> None:
            (folder / "own").write_text("12345")

        def load(self, folder: Path) -> None: ...

    with trial(checkpoint_every_s=0) as t:
        t.track(Own(), "own")
        for _ in t.steps(2):
            t.log(loss=1.0)
    assert checked_in[0] == "mlflow-hooks-checkpoint"
    newest = Checkpoints(tmp_path / "s.a" / "checkpoints").newest()
    assert newest is not None
    assert newest.step == 2


def test_a_thread_that_asks_who_may_write_takes_no_lock_from_one_that_writes(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    fence = journal._fence
    assert isinstance(fence, Fence)
    asked = threading.Thread(target=journal.ours)
    with fence.held():
        asked.start()
        asked.join(0.1)
        assert asked.is_alive(), "it did not wait, and so gave the lock of the process back"
    asked.join(10)
    journal.append([Point("loss", 1.0, 0, 0)])
    journal.close()


@pytest.mark.parametrize(
    ("own", "files", "left"),
    [
        ("0::/pod/a", {"pod/a/memory.max": "max", "pod/memory.max": "1000", "pod/memory.current": "700"}, 300),
        ("0::/pod/a", {"memory.max": "1000", "memory.current": "100"}, 900),
        (
            "0::/a",
            {"a/memory.max": "1000", "a/memory.current": "900", "a/memory.stat": "file 5\ninactive_file 250"},
            350,
        ),
        ("0::/a", {"a/memory.max": "1000", "a/memory.current": "1100"}, 0),
        ("4:cpu,memory:/a", {"memory/a/memory.limit_in_bytes": "1000", "memory/a/memory.usage_in_bytes": "400"}, 600),
        ("0::/a", {}, None),
        ("nonsense", {}, None),
    ],
)
def test_the_memory_that_is_left_is_that_of_the_narrowest_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, files: dict[str, str], left: int | None
) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(f"{own}\n")
    for name, text in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(f"{text}\n")
        if not (groups / name).with_name("memory.stat").exists():
            (groups / name).with_name("memory.stat").write_text("anon 1\n")
    monkeypatch.setattr(linux_system, "_PROC", proc)
    monkeypatch.setattr(linux_system, "_MEMORY_GROUPS", groups)
    assert linux_system.memory_left() == left
    (proc / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:       0 kB\n")
    assert linux_system.memory_left() == 0
