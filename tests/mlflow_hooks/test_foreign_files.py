"""Files that programs write hold no reader up and fill no memory, whatever stands in their place."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mlflow_hooks import bounds
from mlflow_hooks.bounds import LONGEST_LINE, MOST_SMALL
from mlflow_hooks.foreign_files import both_ends, first_bytes, last_bytes, lines_beyond, open_to_append, small_text
from mlflow_hooks.journal import (
    POINTS,
    count_unsent,
    journal_bytes,
    kept_bytes,
    logged_keys,
    points_of,
    read_points,
    read_unsent,
    sent_bytes,
)
from mlflow_hooks.points import Point
from mlflow_hooks.presence import presences
from mlflow_hooks.state_folder import read_ending, read_identity, read_run


def lines(path: Path, offset: int = 0, most: int | None = None) -> list[bytes]:
    return list(lines_beyond(path, offset, most))


def test_whole_lines_are_read_and_half_a_line_waits(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a\nbc\n\nd")
    assert lines(file) == [b"a\n", b"bc\n", b"\n"]
    assert lines(file, 2) == [b"bc\n", b"\n"]
    assert lines(file, 0, 1) == [b"a\n"]
    assert lines(file, 0, 3) == [b"a\n", b"bc\n"]


def test_a_line_without_end_is_passed_over_in_pieces(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (3 * LONGEST_LINE) + b"y\nz\n")
    found = lines(file)
    assert list(map(len, found)) == [LONGEST_LINE] * 3 + [2, 2]
    file.write_bytes(b"x" * (2 * LONGEST_LINE + 1))
    assert sum(map(len, lines(file))) == 2 * LONGEST_LINE


def test_the_first_and_the_newest_lines_are_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"".join(b"line %d\n" % number for number in range(1000)))
    ends = both_ends(file, 100).splitlines()
    assert (ends[0], ends[-1]) == (b"line 0", b"line 999")
    assert all(line.startswith(b"line ") for line in ends)
    assert both_ends(file, 10**6) == file.read_bytes()


def test_a_small_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * MOST_SMALL)
    assert len(small_text(file)) == MOST_SMALL
    file.write_bytes(b"x" * (MOST_SMALL + 1))
    with pytest.raises(OSError, match="longer than"):
        small_text(file)
    assert len(first_bytes(file, 10)) == len(last_bytes(file, 10)) == 10


READERS: dict[str, Callable[[Path], object]] = {
    "trial.json": read_identity,
    "run.json": read_run,
    "ended.json": read_ending,
    "process.json": lambda folder: presences(folder, "1"),
    POINTS: lambda folder: (
        read_unsent(folder, 10),
        read_points(folder, ["loss"], 0)[0],
        list(points_of(folder)),
        count_unsent(folder),
        journal_bytes(folder),
    ),
    "points.sent": sent_bytes,
    "points.kept": kept_bytes,
}
NOTHING = {
    "process.json": [],
    POINTS: (([], 0), [], [], 0, 0),
    "points.sent": 0,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("made", ["a pipe", "a device", "a folder", "too long", "binary", "too deep"])
def test_what_is_no_file_of_ours_counts_as_none(tmp_path: Path, name: str, made: str) -> None:
    path = tmp_path / name
    if made == "a pipe":
        os.mkfifo(path)
    elif made == "a device":
        path.symlink_to("/dev/zero")
    elif made == "a folder":
        path.mkdir()
    else:
        odd = {
            "too long": b"1" * (MOST_SMALL + 1),
            "binary": bytes(range(256)) * 16,
            "too deep": b'{"key": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        }
        path.write_bytes(odd[made])
    read = READERS[name](tmp_path)
    if name == POINTS:
        assert isinstance(read, tuple)
        assert (read[0][0], read[1], read[2]) == ([], [], [])
    else:
        assert read == NOTHING.get(name)


def test_of_a_journal_without_measure_a_part_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlflow_hooks.journal.MOST_OF_JOURNAL", 1000)
    line = Point("loss", 0.5, 1, 1).encode()
    (tmp_path / POINTS).write_bytes(line * 10_000)
    assert 0 < count_unsent(tmp_path) <= 1000
    assert logged_keys(tmp_path) == frozenset({"loss"})
    assert bounds.MOST_OF_JOURNAL > 1000


def test_much_that_holds_no_points_is_gone_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlflow_hooks.journal.MOST_OF_JOURNAL", 1000)
    (tmp_path / POINTS).write_bytes(b"no point\n" * 1000 + Point("loss", 0.5, 1, 1).encode())
    points, offset = read_unsent(tmp_path, 10)
    assert points == []
    assert 0 < offset < 9000


def test_a_pipe_is_not_waited_for_by_who_adds_to_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    with pytest.raises(OSError, match=r"No such device or address|ordinary file"):
        open_to_append(tmp_path / "log")
