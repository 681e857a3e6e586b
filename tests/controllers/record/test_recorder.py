"""The timeline of a run: each change once, and readable after a crash."""

from dataclasses import replace
from pathlib import Path

import pytest

from controllers.core.actions import ACTION_KINDS, Action, Assessment, Clone, Migrate, Place, Resize, Stop, Suspend
from controllers.core.model import Category, Direction, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.record.recorder import Recorder
from controllers.record.timeline import EventKind, TimelineError, TimelineEvent, TimelineFile, read_timeline

A = TrialId("a")
ONE, TWO = NodeName("one"), NodeName("two")
WAITING = Trial(A, Phase.PENDING, 0.1, 0.1, 0.0, Direction.MINIMIZE, 0.0, gated=True)
SUSPENDED = replace(WAITING, phase=Phase.SUSPENDED, attempt=1)
RUNNING = Trial(A, Phase.RUNNING, 0.1, 0.1, 0.0, Direction.MINIMIZE, 0.0, (ONE,), 1)


def record(path: Path, *trials: Trial, category: Category = Category.PROGRESSING) -> list[TimelineEvent]:
    recorder = Recorder(TimelineFile(path).append, dict)
    for at, trial in enumerate(trials):
        recorder.observe(Snapshot(float(at), (trial,), ()), {A: Assessment(category)}, {A: "because"})
    return list(read_timeline(path))


def before_and_after(kind: type[Action]) -> tuple[Trial, Trial]:
    """Return what a world shows of a trial around an action of a kind."""
    known: dict[type[Action], tuple[Trial, Trial]] = {
        Resize: (RUNNING, replace(RUNNING, cpu=0.3)),
        Migrate: (RUNNING, replace(RUNNING, phase=Phase.MOVING, destination=(TWO,))),
        Place: (WAITING, RUNNING),
        Suspend: (RUNNING, replace(RUNNING, phase=Phase.SUSPENDING)),
        Stop: (RUNNING, replace(RUNNING, phase=Phase.STOPPING)),
        Clone: (SUSPENDED, replace(SUSPENDED, lineage=(TrialId("s.b"),))),
    }
    return known[kind]


@pytest.mark.parametrize("kind", ACTION_KINDS)
def test_what_an_action_of_any_kind_does_is_recorded_with_its_reason(kind: type[Action], tmp_path: Path) -> None:
    events = record(tmp_path / "t.jsonl", *before_and_after(kind))
    assert [event.reason for event in events if event.at == 1.0 and event.reason] == ["because"]


def test_nothing_is_recorded_while_nothing_changes(tmp_path: Path) -> None:
    events = record(tmp_path / "t.jsonl", RUNNING, RUNNING, RUNNING)
    assert [event.kind for event in events] == [EventKind.PHASE, EventKind.CATEGORY]


def test_a_resize_is_recorded_with_its_reason(tmp_path: Path) -> None:
    last = record(tmp_path / "t.jsonl", RUNNING, replace(RUNNING, cpu=0.3))[-1]
    assert (last.kind, last.cpu, last.reason, last.node) == (EventKind.RESIZE, 0.3, "because", "one")


def test_a_first_attempt_is_recorded_with_the_reason_for_its_place_and_a_later_one_without(tmp_path: Path) -> None:
    waiting = replace(RUNNING, phase=Phase.PENDING, nodes=(), attempt=0, gated=True)
    again = replace(RUNNING, attempt=2)
    events = [e for e in record(tmp_path / "t.jsonl", waiting, RUNNING, again) if e.kind is EventKind.PHASE]
    assert [(event.phase, event.reason) for event in events] == [
        ("pending", None),
        ("running", "because"),
        ("running", None),
    ]


def test_a_move_is_recorded_when_asked_for_and_when_done(tmp_path: Path) -> None:
    moving = replace(RUNNING, phase=Phase.MOVING, destination=(TWO,))
    moved = replace(RUNNING, nodes=(TWO,), attempt=2)
    events = record(tmp_path / "t.jsonl", RUNNING, moving, moved)
    assert [(event.kind, event.node) for event in events[2:]] == [
        (EventKind.PHASE, "one"),
        (EventKind.MOVE, "two"),
        (EventKind.PHASE, "two"),
    ]


def test_what_is_foreseen_is_recorded_when_it_changes_and_when_it_is_averted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    recorder = Recorder(TimelineFile(path).append, dict)
    for at, outlook in enumerate(("", "will miss", "will miss", "")):
        recorder.observe(Snapshot(float(at), (RUNNING,), ()), {A: Assessment(outlook=outlook)}, {})
    told = [(event.at, event.reason) for event in read_timeline(path) if event.kind is EventKind.OUTLOOK]
    assert told == [(1.0, "will miss"), (3.0, "")]


def test_each_report_of_the_objective_is_recorded_once(tmp_path: Path) -> None:
    reported = replace(RUNNING, progress=Progress(1.0, 0.5, 0.5, 7, 1.0))
    events = record(tmp_path / "t.jsonl", RUNNING, reported, reported)
    assert [(event.value, event.step) for event in events if event.kind is EventKind.REPORT] == [(0.5, 7)]


def test_a_report_tells_the_other_metrics_that_count_as_far_as_they_are_numbers(tmp_path: Path) -> None:
    seen = Progress(1.0, 0.5, 0.5, 7, 1.0, also=(("latency", 3.0), ("memory", float("nan"))))
    (_, _, report) = record(tmp_path / "t.jsonl", RUNNING, replace(RUNNING, progress=seen))
    assert report.also == {"latency": 3.0}


def test_a_last_line_cut_short_is_passed_over_but_a_broken_one_before_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    record(path, RUNNING)
    whole = path.read_text()
    path.write_text(whole + '{"at": 3.0, "ki')
    assert len(list(read_timeline(path))) == 2
    path.write_text('{"at": 3.0, "ki\n' + whole)
    with pytest.raises(TimelineError, match="line 1"):
        list(read_timeline(path))


def test_a_resumed_run_appends_whole_lines_after_a_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    record(path, RUNNING)
    path.write_text(path.read_text() + '{"at": 3.0, "ki')
    assert len(record(path, RUNNING)) == 4
