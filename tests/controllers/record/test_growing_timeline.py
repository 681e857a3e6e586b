from pathlib import Path

import pytest

from controllers.record.timeline import (
    EventKind,
    GrowingTimeline,
    TimelineError,
    TimelineEvent,
    TimelineFile,
    read_timeline,
)


def event(at: float) -> TimelineEvent:
    return TimelineEvent(at, EventKind.MOVE, "a", node="n1", reason="wärmer", nodes=("n1", "n2"))


def test_each_look_adds_what_has_come_since(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    file, growing = TimelineFile(path), GrowingTimeline(path)
    file.append([event(0)])
    assert list(growing.events()) == [event(0)]
    file.append([event(1), event(2)])

    assert list(growing.events()) == list(growing.events()) == list(read_timeline(path))


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    line = event(0).to_json().encode() + b"\n"
    growing = GrowingTimeline(path)
    for cut in range(len(line)):
        path.write_bytes(line[:cut])
        assert list(growing.events()) == []
    path.write_bytes(line)
    assert list(growing.events()) == [event(0)]


def test_a_line_that_is_no_event_is_named_once_and_does_not_hide_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    growing = GrowingTimeline(path)
    path.write_text(f"{event(0).to_json()}\n\xff{{\n{event(1).to_json()}\n", encoding="latin-1")
    with pytest.raises(TimelineError, match="line 2"):
        growing.events()

    assert list(growing.events()) == [event(0), event(1)]


def test_kinds_of_newer_versions_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    path.write_text('{"at": 1, "kind": "teleport", "trial": "a"}\n' + event(2).to_json() + "\n")

    assert list(GrowingTimeline(path).events()) == [event(2)]
