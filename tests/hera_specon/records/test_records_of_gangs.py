"""What the record of a run tells of trials with several workers, from the event to the chart."""

from dataclasses import replace
from pathlib import Path

import pytest

from controllers.core.model import Direction, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.record.measures import share_of_allocation_used, utilisation_variance
from controllers.record.recorder import Recorder
from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile, read_timeline
from controllers.tracking.tag_boards import trial_tags
from hera_specon.display.screens import changes
from hera_specon.records.history import SweepHistory, history
from hera_specon.records.run_folder import load_run
from hera_specon.report.curves import shares, usage
from hera_specon.report.gantt import bands, gantt
from hera_specon.sweep_state import trial_rows, where
from tests.hera_specon.report.example_run import write_example_run

N1, N2 = NodeName("n1"), NodeName("n2")
PAIR = Trial(
    TrialId("a"), Phase.RUNNING, 0.2, 0.2, 0.0, Direction.MINIMIZE, 0.0, (N1, N2, N1), 1, workers=3, max_workers=3
)
GROWS = replace(PAIR, phase=Phase.MOVING, destination=(N2, N2))
ALONE = replace(PAIR, nodes=(N2,), workers=1, attempt=2)
EVENTS = [
    TimelineEvent(0, EventKind.PHASE, "a", phase="running", node="n1", nodes=("n1", "n2", "n1"), attempt=1, cpu=0.2),
    TimelineEvent(4, EventKind.USAGE, "a", node="n1", nodes=("n1", "n2", "n1"), value=0.6),
    TimelineEvent(4, EventKind.PHASE, "a", phase="running", node="n2", attempt=2, cpu=0.2),
    TimelineEvent(8, EventKind.PHASE, "a", phase="succeeded", node="n2", attempt=2, cpu=0.2),
]


@pytest.fixture
def told() -> SweepHistory:
    return history(EVENTS)


def test_events_of_a_gang_name_all_its_nodes_and_read_back_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "timeline.jsonl"
    recorder = Recorder(TimelineFile(file).append, lambda: {TrialId("a"): 0.5})
    for at, trial in enumerate((PAIR, GROWS, ALONE, replace(ALONE, cpu=0.3))):
        recorder.observe(Snapshot(float(at), (trial,), ()), {}, {})
    found = [(event.kind, event.node, event.nodes) for event in read_timeline(file)]
    three = ("n1", "n2", "n1")
    assert found == [
        (EventKind.PHASE, "n1", three),
        (EventKind.USAGE, "n1", three),
        (EventKind.PHASE, "n1", three),
        (EventKind.MOVE, "n2", ("n2", "n2")),
        (EventKind.PHASE, "n2", None),
        (EventKind.USAGE, "n2", None),
        (EventKind.RESIZE, "n2", None),
    ]


def test_each_worker_has_its_own_bar_on_its_node(told: SweepHistory) -> None:
    laid = {band.node: [(bar.lane, bar.stretch.start, bar.stretch.end) for bar in band.bars] for band in bands(told)}
    assert laid == {"n1": [(0, 0, 4), (1, 0, 4)], "n2": [(0, 0, 4), (0, 4, 8)]}


def test_the_chart_says_which_nodes_a_gang_is_on(told: SweepHistory, tmp_path: Path) -> None:
    run = replace(load_run(write_example_run(tmp_path)).runs[0], history=told)
    assert "one of 3 workers, on n1, n2, n1" in gantt([run])


def test_what_a_gang_holds_and_uses_of_a_node_is_that_of_its_workers_there(told: SweepHistory) -> None:
    times, held = shares(told, "n1")
    assert (times, held["a"]) == ([0.0, 4, 8], [0.4, 0.0, 0.0])
    assert [(at, round(cores, 9)) for at, cores in usage(told, "n1")] == [(4, 0.4)]
    assert [(at, round(cores, 9)) for at, cores in usage(told, "n2")] == [(4, 0.2)]
    assert share_of_allocation_used(EVENTS[:2]) == pytest.approx(1.0)
    assert utilisation_variance(EVENTS[:2], {"n1": 0.4, "n2": 0.2}) == pytest.approx(0.0)


def test_screens_and_tags_tell_of_all_workers() -> None:
    (row,) = trial_rows(Snapshot(0.0, (GROWS,), ()), {}, {})
    assert (row.node, row.workers) == ("n1 x2, n2 → n2 x2", 3)
    assert where(replace(PAIR, nodes=())) == ""
    assert changes({}, Snapshot(0.0, (GROWS,), ()), {}) == ["[0.0 s] a moves from n1 x2, n2 to n2 x2"]
    tags = trial_tags(PAIR, None, None)
    assert (tags["specon.node"], tags["specon.workers"]) == ("n1, n2, n1", "3")
    assert "specon.workers" not in trial_tags(replace(ALONE, max_workers=1), None, None)
