"""What hooks say of the process that trains, and who is asked to leave by that."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.whom_to_ask import who_trains
from mlflow_hooks.presence import LEFT, TRAINING, Announcement, Presence, presences


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        yield process.pid
        process.kill()


def test_only_a_process_of_the_attempt_itself_is_asked(tmp_path: Path, child: int) -> None:
    me, born = os.getpid(), proctree.start_time(os.getpid())
    assert born is not None
    fields = {"attempt": "token", "rank": 0, "pid": me, "started": born, "doing": TRAINING}
    (tmp_path / "process.json").write_text(json.dumps(fields))
    assert who_trains([child, me], presences(tmp_path, "token")) == me
    assert who_trains([child], presences(tmp_path, "token")) is None
    assert who_trains([child, me], presences(tmp_path, "another attempt")) is None
    (tmp_path / "process.json").write_text(json.dumps({**fields, "started": born - 1}))
    assert who_trains([child, me], presences(tmp_path, "token")) is None


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"[]",
        b"\xff\x00",
        b"[" * 100_000,
        b'{"attempt": "token"}',
        b'{"attempt": "token", "rank": 0, "pid": true, "started": 1, "doing": "training"}',
        b'{"attempt": "token", "rank": 0, "pid": 1.5, "started": 1, "doing": "training"}',
        b'{"attempt": "token", "rank": 7, "pid": 1, "started": 1, "doing": "training"}',
        b'{"attempt": "token", "rank": 0, "pid": 1, "started": 1, "doing": "' + b"x" * 5000 + b'"}',
    ],
)
def test_what_makes_no_sense_says_nothing(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "process.json").write_bytes(written)
    assert presences(tmp_path, "token") == []


def test_a_process_says_what_it_does_until_its_training_is_over(tmp_path: Path) -> None:
    said = Announcement(tmp_path, "token", 0)
    said.training()
    assert presences(tmp_path, "token") == [
        Presence("token", 0, os.getpid(), proctree.start_time(os.getpid()) or 0, TRAINING)
    ]
    said.left()
    assert [one.doing for one in presences(tmp_path, "token")] == [LEFT]
    said.over()
    assert presences(tmp_path, "token") == []


def test_neither_a_newer_attempt_nor_a_forked_child_is_spoken_for(tmp_path: Path) -> None:
    older, newer = Announcement(tmp_path, "older", 0), Announcement(tmp_path, "newer", 0)
    older.training()
    newer.training()
    older.left()
    older.over()
    assert [one.doing for one in presences(tmp_path, "newer")] == [TRAINING]
    code = (
        "import os, sys; from pathlib import Path; from mlflow_hooks.presence import Announcement\n"
        "said = Announcement(Path(sys.argv[1]), 'token', 1); said.training()\n"
        "if os.fork() == 0: said.left(); said.over(); os._exit(0)\n"
        "os.wait()"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=Path(__file__).parents[2])
    assert [(one.rank, one.doing) for one in presences(tmp_path, "token")] == [(1, TRAINING)]
