from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controllers.record.timeline import EventKind, TimelineEvent
from hera_specon.records.history import Stretch, history, stretches_of

PHASE, RESIZE, MOVE, CATEGORY = EventKind.PHASE, EventKind.RESIZE, EventKind.MOVE, EventKind.CATEGORY


def moved_trial() -> list[TimelineEvent]:
    return [
        TimelineEvent(0, PHASE, "a", phase="pending", cpu=0.2),
        TimelineEvent(1, PHASE, "a", phase="running", node="n1", attempt=1, cpu=0.2),
        TimelineEvent(5, CATEGORY, "a", category="progressing", value=0.3),
        TimelineEvent(7, RESIZE, "a", node="n1", cpu=0.4, reason="gains most"),
        TimelineEvent(9, PHASE, "a", phase="moving", node="n1", attempt=1, cpu=0.4),
        TimelineEvent(9, MOVE, "a", node="n2", reason="n2 is idle"),
        TimelineEvent(12, PHASE, "a", phase="running", node="n2", attempt=2, cpu=0.4),
        TimelineEvent(20, PHASE, "a", phase="succeeded", node="n2", attempt=2, cpu=0.4),
    ]


def test_a_trial_is_cut_wherever_its_phase_node_category_or_share_changes() -> None:
    told = [(s.start, s.end, s.phase, s.node, s.cpu, s.category) for s in stretches_of(moved_trial(), 20)]

    assert told == [
        (0, 1, "pending", None, 0.2, None),
        (1, 5, "running", "n1", 0.2, None),
        (5, 7, "running", "n1", 0.2, "progressing"),
        (7, 9, "running", "n1", 0.4, "progressing"),
        (9, 12, "moving", "n1", 0.4, "progressing"),
        (12, 20, "running", "n2", 0.4, "progressing"),
    ]


def test_the_reason_of_a_change_stays_until_the_next_one() -> None:
    reasons = {(s.start, s.reason) for s in stretches_of(moved_trial(), 20)}

    assert {(5, ""), (7, "gains most"), (9, "n2 is idle")} <= reasons


def test_a_move_knows_where_it_came_from() -> None:
    (move,) = history(moved_trial()).moves

    assert (move.at, move.source, move.target, move.reason) == (9, "n1", "n2", "n2 is idle")


def test_a_trial_that_has_not_ended_is_shown_up_to_the_last_event_of_the_run() -> None:
    events = [
        TimelineEvent(0, PHASE, "a", phase="running", node="n1"),
        TimelineEvent(30, PHASE, "b", phase="running", node="n1"),
    ]

    assert history(events).stretches["a"][-1].end == 30


def test_a_trial_that_waits_again_holds_no_node() -> None:
    events = [
        TimelineEvent(0, PHASE, "a", phase="running", node="n1"),
        TimelineEvent(4, PHASE, "a", phase="pending"),
    ]

    assert [s.node for s in stretches_of(events, 9)] == ["n1", None]


def test_nodes_come_in_the_order_people_count() -> None:
    events = [TimelineEvent(0, PHASE, f"t{i}", phase="running", node=f"node-{i}") for i in (10, 9, 2)]
    events.append(TimelineEvent(1, PHASE, "t2", phase="succeeded", node="node-2"))

    assert history(events).nodes() == ["node-2", "node-9", "node-10"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just(PHASE), st.sampled_from(["pending", "running", "moving"]), st.sampled_from(["n1", "n2"])),
        st.tuples(st.just(CATEGORY), st.sampled_from(["progressing", "watching", "converged"]), st.none()),
    ),
    min_size=1,
)


@given(steps)
def test_stretches_follow_on_one_another_without_gap_or_overlap(told: list[tuple[EventKind, str, str | None]]) -> None:
    events = [TimelineEvent(0, PHASE, "a", phase="running", node="n1")]
    for at, (kind, word, node) in enumerate(told, start=1):
        fields = {"phase": word, "node": node} if kind is PHASE else {"category": word}
        events.append(TimelineEvent(at, kind, "a", **fields))

    stretches: tuple[Stretch, ...] = stretches_of(events, len(told) + 1)

    assert stretches[0].start == 0
    assert stretches[-1].end == len(told) + 1
    assert all(before.end == after.start for before, after in pairwise(stretches))
