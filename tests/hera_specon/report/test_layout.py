from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.record.timeline import EventKind, TimelineEvent
from hera_specon.records.history import SweepHistory, history
from hera_specon.report.curves import shares, usage
from hera_specon.report.gantt import bands
from tests.hera_specon.report.example_run import simulated

PHASE = EventKind.PHASE


def stays(*told: tuple[str, str, float, float]) -> SweepHistory:
    events = []
    for trial, node, start, end in told:
        events.append(TimelineEvent(start, PHASE, trial, phase="running", node=node, cpu=0.5))
        events.append(TimelineEvent(end, PHASE, trial, phase="succeeded", node=node))
    return history(events)


def test_a_lane_is_used_again_when_it_is_free() -> None:
    (band,) = bands(stays(("a", "n1", 0, 5), ("b", "n1", 2, 9), ("c", "n1", 5, 8)))

    assert {bar.stretch.trial: bar.lane for bar in band.bars} == {"a": 0, "b": 1, "c": 0}


def test_nodes_lie_one_under_the_other() -> None:
    laid = bands(stays(("a", "n1", 0, 5), ("b", "n1", 2, 9), ("c", "n2", 0, 3)))

    assert [(band.node, band.top, band.lanes) for band in laid] == [("n1", 0, 2), ("n2", 2, 1)]


def test_a_trial_that_comes_back_to_a_node_is_two_stays() -> None:
    events = [
        TimelineEvent(0, PHASE, "a", phase="running", node="n1"),
        TimelineEvent(4, PHASE, "a", phase="running", node="n2"),
        TimelineEvent(6, PHASE, "b", phase="running", node="n1"),
        TimelineEvent(8, PHASE, "a", phase="running", node="n1"),
        TimelineEvent(12, PHASE, "a", phase="succeeded", node="n1"),
    ]

    first = bands(history(events))[0]

    assert [(b.stretch.trial, b.stretch.start, b.lane) for b in first.bars] == [("a", 0, 0), ("b", 6, 0), ("a", 8, 1)]


def test_a_change_of_share_alone_does_not_cut_a_bar() -> None:
    events = [
        TimelineEvent(0, PHASE, "a", phase="running", node="n1", cpu=0.2),
        TimelineEvent(4, EventKind.RESIZE, "a", node="n1", cpu=0.4, reason="gains"),
        TimelineEvent(9, PHASE, "a", phase="succeeded", node="n1"),
    ]

    (bar,) = bands(history(events))[0].bars

    assert (bar.stretch.start, bar.stretch.end, bar.stretch.cpu, bar.stretch.reason) == (0, 9, 0.4, "gains")


times = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=15)


@given(times)
def test_no_two_bars_of_a_lane_overlap(told: list[tuple[int, int]]) -> None:
    (band,) = bands(stays(*((f"t{i}", "n1", start, start + length) for i, (start, length) in enumerate(told))))

    for one, other in combinations(band.bars, 2):
        if one.lane == other.lane:
            assert one.stretch.end <= other.stretch.start or other.stretch.end <= one.stretch.start


def test_shares_are_those_held_from_each_time_on() -> None:
    at, cores = shares(stays(("a", "n1", 0, 5), ("b", "n1", 2, 9)), "n1")

    assert at == [0, 2, 5, 9]
    assert cores == {"a": [0.5, 0.5, 0, 0], "b": [0, 0.5, 0.5, 0]}


@pytest.mark.parametrize("speculative", [False, True])
def test_trials_never_use_more_than_their_node_has(*, speculative: bool) -> None:
    told = history(simulated(speculative=speculative).events)

    used = [cores for node in told.nodes() for _, cores in usage(told, node)]

    assert used
    assert max(used) == pytest.approx(0.45)


def test_use_counts_a_trial_no_more_after_it_left() -> None:
    events = [
        TimelineEvent(0, PHASE, "a", phase="running", node="n1"),
        TimelineEvent(0, PHASE, "b", phase="running", node="n1"),
        TimelineEvent(2, EventKind.USAGE, "a", node="n1", value=0.3),
        TimelineEvent(2, EventKind.USAGE, "b", node="n1", value=0.1),
        TimelineEvent(3, PHASE, "a", phase="succeeded", node="n1"),
        TimelineEvent(4, EventKind.USAGE, "b", node="n1", value=0.4),
        TimelineEvent(5, PHASE, "b", phase="succeeded", node="n1"),
    ]

    assert usage(history(events), "n1") == [(2, 0.4), (4, 0.4)]
