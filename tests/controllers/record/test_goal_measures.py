"""What counts as a deadline met, a target reached, a step in time, and CPU used of what was allocated."""

import pytest

from controllers.core.goals import AskedGoals, GoalError, goals_in
from controllers.core.labels import ANNOTATION_DEADLINE, ANNOTATION_SECONDS_PER_STEP, ANNOTATION_TARGET
from controllers.core.model import Direction, Goals
from controllers.record.measures import (
    at_pace_while_all_run,
    fast_enough,
    satisfied,
    seconds_per_step,
    share_of_allocation_used,
    times_to_target,
)
from controllers.record.timeline import EventKind, TimelineEvent


def report(at: float, trial: str, value: float, step: int) -> TimelineEvent:
    return TimelineEvent(at, EventKind.REPORT, trial, value=value, step=step)


def test_the_time_to_a_target_counts_from_submission_to_the_first_report_past_it() -> None:
    events = [
        TimelineEvent(5.0, EventKind.PHASE, "a", phase="pending"),
        *(report(at, "a", value, 1) for at, value in ((10.0, 0.9), (15.0, 0.5), (20.0, 0.4))),
        report(10.0, "b", 0.9, 1),
    ]
    goals = {name: AskedGoals(target=0.5) for name in "ab"}
    assert times_to_target(events, goals, Direction.MINIMIZE) == {"a": 10.0}
    assert times_to_target(events, goals, Direction.MAXIMIZE) == {"a": 5.0, "b": 0.0}


def test_trials_are_satisfied_within_the_tolerance_of_their_time_per_step() -> None:
    took = seconds_per_step([report(0.0, "a", 1.0, 1), report(30.0, "a", 1.0, 11), report(5.0, "b", 1.0, 1)])
    assert took == {"a": 3.0}
    for goal, expected in ((2.9, ("a",)), (2.0, ()), (4.0, ())):
        assert satisfied(took, {"a": AskedGoals(seconds_per_step=goal)}, tolerance=0.1) == expected


def test_trials_that_are_faster_than_asked_are_fast_enough_though_beyond_the_tolerance() -> None:
    took = {"fast": 1.0, "slow": 3.0}
    goals = {name: AskedGoals(seconds_per_step=2.0) for name in took}
    assert fast_enough(took, goals, tolerance=0.1) == ("fast",)
    assert satisfied(took, goals, tolerance=0.1) == ()


def test_at_a_moment_those_trials_are_at_pace_whose_steps_take_as_asked_just_then() -> None:
    steady = [report(float(at), "steady", 1.0, at // 2) for at in range(0, 201, 10)]
    # Its steps take 1 s until 100 s, and 2 s from then on.
    turning = [report(float(at), "turning", 1.0, min(at, 100) + max(0, at - 100) // 2) for at in range(0, 201, 10)]
    goals = {name: AskedGoals(seconds_per_step=2.0) for name in ("steady", "turning")}
    assert at_pace_while_all_run(steady + turning, goals, 0.1) == pytest.approx(1.5)
    assert at_pace_while_all_run(steady + turning, goals, 0.1, or_faster=True) == pytest.approx(2.0)


def test_only_the_time_counts_in_which_all_trials_with_a_time_per_step_run() -> None:
    first = [report(float(at), "first", 1.0, at) for at in range(0, 101, 10)]
    # Alone from 100 s on, it is as fast as asked; that is nobody's merit.
    second = [report(float(at), "second", 1.0, min(at - 40, 60) // 3 + max(0, at - 100)) for at in range(40, 301, 10)]
    free = [report(500.0, "free", 1.0, 1)]
    goals = {name: AskedGoals(seconds_per_step=1.0) for name in ("first", "second")} | {"free": AskedGoals()}
    assert at_pace_while_all_run(first + second + free, goals, 0.1) == pytest.approx(1.0)
    assert at_pace_while_all_run(first, goals, 0.1) is None
    assert at_pace_while_all_run([*first, *[report(at + 200.0, "second", 1.0, 1) for at in (0, 9)]], goals, 0.1) is None
    assert at_pace_while_all_run(first, {}, 0.1) is None


def test_only_use_within_the_allocation_counts_and_an_allocation_that_changes_counts_by_the_second() -> None:
    def phase(at: float, what: str, cpu: float) -> TimelineEvent:
        return TimelineEvent(at, EventKind.PHASE, "a", phase=what, cpu=cpu)

    def usage(at: float, cores: float) -> TimelineEvent:
        return TimelineEvent(at, EventKind.USAGE, "a", value=cores)

    events = [
        phase(0.0, "pending", 4.0),
        phase(10.0, "running", 4.0),
        usage(10.0, 0.0),
        TimelineEvent(20.0, EventKind.RESIZE, "a", cpu=1.0),
        usage(30.0, 2.0),
        phase(30.0, "succeeded", 1.0),
    ]
    # 4 cores for 10 s, then 1 for 10 s; 2 are used throughout.
    assert share_of_allocation_used(events) == pytest.approx((20 + 10) / (40 + 10))
    assert share_of_allocation_used([]) == 1.0


def test_goals_are_read_from_annotations_and_a_deadline_counts_from_the_submission() -> None:
    notes = {ANNOTATION_DEADLINE: "90", ANNOTATION_TARGET: "-0.5", ANNOTATION_SECONDS_PER_STEP: "2"}
    assert goals_in(notes).since(10.0) == Goals(100.0, -0.5, 2.0)
    assert goals_in({}).since(10.0) == Goals()


@pytest.mark.parametrize(
    ("name", "value"),
    [(ANNOTATION_DEADLINE, "0"), (ANNOTATION_DEADLINE, "-3"), (ANNOTATION_TARGET, "nan"), (ANNOTATION_TARGET, "low"),
     (ANNOTATION_SECONDS_PER_STEP, "inf")],
)  # fmt: skip
def test_a_goal_that_cannot_be_is_refused_with_its_name_and_value(name: str, value: str) -> None:
    with pytest.raises(GoalError, match=f"{name} must be a .*{value}"):
        goals_in({name: value})
