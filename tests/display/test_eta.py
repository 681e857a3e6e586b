import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Direction, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from hera_specon.sweep_state import WINDOW, Pace, seconds_left


def trial(name: str, step: int | None, total: int | None = 100, phase: Phase = Phase.RUNNING) -> Trial:
    progress = None if step is None else Progress(1.0, 0.5, 0.5, step, 0.0, steps_total=total)
    nodes = (NodeName("n1"),) if phase is Phase.RUNNING else ()
    return Trial(TrialId(name), phase, 0.5, 0.5, 0.0, Direction.MINIMIZE, 0.0, nodes, progress=progress)


def left(*snapshots: Snapshot) -> float | None:
    pace = Pace()
    for snapshot in snapshots:
        pace = pace.after(snapshot)
    return seconds_left(pace, snapshots[-1])


def test_the_slowest_trial_decides() -> None:
    before = Snapshot(0.0, (trial("a", 0), trial("b", 0)), ())
    after = Snapshot(10.0, (trial("a", 50), trial("b", 10)), ())

    assert left(before, after) == pytest.approx(90.0)


def test_nothing_is_promised_before_anything_is_known() -> None:
    assert left(Snapshot(0.0, (trial("a", None),), ())) is None
    assert left(Snapshot(0.0, (trial("a", 5),), ())) is None


def test_trials_of_unknown_length_leave_the_end_open() -> None:
    before = Snapshot(0.0, (trial("a", 0, None),), ())

    assert left(before, Snapshot(10.0, (trial("a", 5, None),), ())) is None


def test_a_trial_that_waits_is_taken_to_be_like_the_others() -> None:
    before = Snapshot(0.0, (trial("a", 0), trial("b", None, phase=Phase.PENDING)), ())
    after = Snapshot(10.0, (trial("a", 50), trial("b", None, phase=Phase.PENDING)), ())

    assert left(before, after) == pytest.approx(20.0)


def test_a_new_pace_counts_once_the_old_one_is_out_of_the_window() -> None:
    late = WINDOW + 10
    steps = [(0.0, 0), (10.0, 50), (late, 60), (late + WINDOW, 80)]

    assert left(*(Snapshot(at, (trial("a", step),), ()) for at, step in steps)) == pytest.approx(WINDOW)


def test_when_all_have_ended_nothing_is_left() -> None:
    assert left(Snapshot(9.0, (trial("a", 100, phase=Phase.SUCCEEDED),), ())) == 0.0


@given(st.lists(st.integers(0, 100), min_size=2, max_size=20))
def test_the_time_left_is_never_negative(steps: list[int]) -> None:
    told = left(*(Snapshot(float(at), (trial("a", step),), ()) for at, step in enumerate(steps)))

    assert told is None or told >= 0
