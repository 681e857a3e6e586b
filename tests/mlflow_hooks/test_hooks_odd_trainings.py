"""What trainings and machines do now and then: full disks, absurd steps, children, two attempts that both live."""

import errno
import multiprocessing
import signal
import threading
import time
from pathlib import Path

import pytest

from mlflow_hooks import interruption, state_folder, trial
from mlflow_hooks import saving as saving_module
from mlflow_hooks.checkpoints import Checkpoints
from mlflow_hooks.interruption import Ownership
from mlflow_hooks.journal import Journal, read_unsent
from mlflow_hooks.points import Point

pytestmark = pytest.mark.usefixtures("in_this_process")


class Torchlike:
    """A state that tells of a full disk as PyTorch does."""

    full = True

    def save(self, folder: Path) -> None:
        (folder / "half").write_text("begun")
        if self.full:
            message = "[enforce fail at inline_container.cc] PytorchStreamWriter failed writing file"
            raise RuntimeError(message)

    def load(self, folder: Path) -> None:
        del folder


def steps_of(folder: Path, key: str) -> list[int]:
    return [point.step for point in read_unsent(folder, 10_000)[0] if point.key == key]


def test_a_full_disk_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_room(path: Path, _data: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(saving_module, "disk_is_full", lambda _: True)
    with trial(checkpoint_every_s=0) as t:
        t.track(Torchlike())
        monkeypatch.setattr(state_folder, "write_whole", no_room)
        for step in t.steps(3):
            t.log(loss=1.0 / (1 + step))
    assert steps_of(tmp_path / "s.a", "loss") == [0, 1, 2]
    told = capsys.readouterr().err
    assert "no checkpoint at step 1" in told
    assert "cannot keep how the trial ended" in told
    assert not list((tmp_path / "s.a" / "checkpoints").glob(".writing-*"))


def test_a_mistake_in_a_states_own_code_is_seen() -> None:
    def train() -> None:
        with trial(checkpoint_every_s=0) as t:
            t.track(Torchlike())
            for _ in t.steps(2):
                pass

    with pytest.raises(RuntimeError, match="PytorchStreamWriter"):
        train()


def test_checkpoints_of_more_than_a_hundred_million_steps_are_kept_in_order(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    for step in (99_999_998, 99_999_999, 100_000_000, 1_000_000_000):
        assert kept.save(step, lambda _: (), 0.0, lambda: True)
    newest = kept.newest()
    assert newest is not None
    assert newest.step == 1_000_000_000
    assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-100000000", "step-1000000000"]


def test_steps_and_values_that_mlflow_would_never_take_are_reported_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trial() as t:
        t.log({"loss": 1.0}, step=2**63)
        t.log({"loss": 1.0}, step=-1)
        t.log({"loss": 10**400, "rate": 0.1, "bad\udcff": 2.0}, step=3)
    points = read_unsent(tmp_path / "s.a", 100)[0]
    assert {(point.key, point.step) for point in points} == {("rate", 3), ("bad?", 3)}
    told = capsys.readouterr().err
    assert "step 9223372036854775808 is not from 0" in told
    assert "loss is beyond what a number holds" in told


def test_a_trial_off_the_main_thread_trains_and_says_that_it_cannot_be_asked_to_leave(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def train() -> None:
        with trial() as t:
            for _ in t.steps(2):
                t.log(loss=1.0)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join(30)
    assert steps_of(tmp_path / "s.a", "loss") == [0, 1]
    assert "not on the main thread" in capsys.readouterr().err


def _sleep() -> None:
    time.sleep(60)


def test_a_forked_child_is_ended_by_sigterm_as_ever() -> None:
    with trial() as t:
        child = multiprocessing.get_context("fork").Process(target=_sleep)
        child.start()
        time.sleep(0.3)
        child.terminate()
        child.join(10)
        assert child.exitcode == -signal.SIGTERM
        assert not t.stopping


def test_of_two_attempts_that_both_live_the_older_writes_nothing_once_the_newer_has_read(tmp_path: Path) -> None:
    for number in range(200):
        folder = tmp_path / str(number)
        folder.mkdir()
        older = Ownership(folder, "older")
        older.claim()
        journal = Journal(folder, older.held)
        stop = threading.Event()

        def write(journal: Journal = journal, stop: threading.Event = stop) -> None:
            step = 0
            while not stop.is_set() and step < 5000:
                journal.append([Point("loss", 1.0, step, 1)])
                step += 1

        writing = threading.Thread(target=write)
        writing.start()
        time.sleep(0.001 * (number % 5))
        newer = Ownership(folder, "newer")
        newer.claim()
        read = Journal(folder, newer.held)
        seen = read.high_water.get("loss", -1)
        time.sleep(0.002)
        stop.set()
        writing.join()
        assert steps_of(folder, "loss") == list(range(seen + 1)), number
        for one in (journal, read):
            one.close()


def test_an_attempt_after_the_first_starts_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_room(path: Path, _data: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    first = trial()
    monkeypatch.setattr(state_folder, "write_whole", no_room)
    monkeypatch.setattr(interruption, "write_whole", no_room)
    monkeypatch.setenv("SPECON_ATTEMPT", "second")
    with trial() as t:
        for _ in t.steps(2):
            t.log(loss=1.0)
    assert not first._owner.held()
    assert (tmp_path / "s.a" / "owner").read_text() == "second"
    assert steps_of(tmp_path / "s.a", "loss") == [0, 1]
    assert "cannot replace trial.json" in capsys.readouterr().err
