"""Two attempts that are both alive, on storage that shows late what another node wrote."""

import errno
import fcntl
import threading
import time
from pathlib import Path

import pytest

from mlflow_hooks import MigrationExit, fence, trial
from mlflow_hooks.checkpoints import Checkpoints
from mlflow_hooks.interruption import Ownership
from mlflow_hooks.journal import Journal, read_unsent
from mlflow_hooks.points import Point

pytestmark = pytest.mark.usefixtures("in_this_process")


class Weights:
    """A state that is always the same."""

    def save(self, folder: Path) -> None:
        (folder / "weights").write_text("0.5")

    def load(self, folder: Path) -> None:
        del folder


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system on which nobody ever sees that the file ``owner`` was replaced."""
    monkeypatch.setattr(Ownership, "_still_ours", lambda _: True)


def steps_of(folder: Path) -> list[int]:
    return [point.step for point in read_unsent(folder, 100_000)[0] if point.key == "loss"]


@pytest.mark.usefixtures("late")
def test_no_step_is_logged_twice_where_ownership_is_seen_late(tmp_path: Path) -> None:
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        older = Journal(folder, Ownership(folder, "older").held)
        stop = threading.Event()

        def write(older: Journal = older, stop: threading.Event = stop) -> None:
            step = 0
            while not stop.is_set() and step < 5000:
                older.append([Point("loss", 1.0, step, 1)])
                step += 1

        writing = threading.Thread(target=write)
        writing.start()
        newer = Journal(folder, Ownership(folder, "newer").held)
        seen = newer.high_water.get("loss", -1)
        newer.append([Point("loss", 1.0, seen + 1, 1)])
        stop.set()
        writing.join()
        assert steps_of(folder) == list(range(seen + 2)), number
        assert (older.ours(), newer.ours()) == (False, True)
        for one in (older, newer):
            one.close()


@pytest.mark.usefixtures("late")
def test_an_attempt_that_was_replaced_saves_no_checkpoint_and_tells_no_ending(tmp_path: Path) -> None:
    def train() -> None:
        with trial(checkpoint_every_s=0) as older:
            older.track(Weights())
            for step in older.steps(3):
                older.log(loss=1.0)
                if step == 0:
                    Journal(tmp_path / "s.a").close()

    with pytest.raises(MigrationExit):
        train()
    folder = tmp_path / "s.a"
    newest = Checkpoints(folder / "checkpoints").newest()
    assert newest is None
    assert steps_of(folder) == [0]
    assert not (folder / "ended.json").exists()


def test_a_file_system_without_locks_is_used_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    older, newer = Journal(tmp_path), Journal(tmp_path)
    older.append([Point("loss", 1.0, 0, 1)])
    newer.append([Point("loss", 1.0, 1, 1)])
    assert steps_of(tmp_path) == [1]


def test_what_is_logged_after_the_end_is_told_and_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(tmp_path)
    journal.close()
    journal.append([Point("loss", 1.0, 0, 1)])
    assert "cannot write metrics" in capsys.readouterr().err
    assert steps_of(tmp_path) == []


def test_a_point_that_an_older_version_journalled_and_mlflow_cannot_keep_holds_up_no_other(tmp_path: Path) -> None:
    lines = [f'{{"key": "loss", "value": 1.0, "step": {step}, "timestamp": 1}}\n' for step in (0, 2**63, 1)]
    (tmp_path / "points.jsonl").write_text("".join(lines))
    points, offset = read_unsent(tmp_path, 10)
    assert [point.step for point in points] == [0, 1]
    assert offset == sum(map(len, lines))
    journal = Journal(tmp_path)
    assert journal.is_new("loss", 2)
    journal.close()


def test_an_attempt_that_was_stopped_with_the_lock_holds_the_next_one_up_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fence, "_LOCK_S", 0.5)
    stopped = Journal(tmp_path)
    assert stopped._fence is not None
    with stopped._fence.held():
        newer = Journal(tmp_path)
        began = time.monotonic()
        for step in range(50):
            newer.append([Point("loss", 1.0, step, 1)])
        assert time.monotonic() - began < 5
    stopped.append([Point("loss", 1.0, 50, 1)])
    assert steps_of(tmp_path) == list(range(50))
