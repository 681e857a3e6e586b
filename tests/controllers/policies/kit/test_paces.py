"""How a trial's speed is measured, and what is made of it for other numbers of cores."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Progress
from controllers.policies.kit.paces import MOST_POINTS, Pace, StepMemo, time_steps, update_pace
from tests.controllers.policies.policy_fakes import node, snapshot, trial


def seen(step: int, at: float, cpu_seconds: float | None) -> Progress:
    return Progress(1.0, 0.5, 0.5, step, at, cpu_seconds, steps_total=100)


def look(pace: Pace, memo: StepMemo, progress: Progress, cpu: float, attempt: int = 1) -> tuple[Pace, StepMemo]:
    there = trial("a", "n", cpu=cpu, attempt=attempt, progress=progress)
    after = time_steps(snapshot(progress.at, [there], [node("n")]), {there.id: memo}, 1e9)[there.id]
    return update_pace(there, pace, memo, after), after


def after(*reports: Progress, cpu: float = 1.0, attempts: tuple[int, ...] = ()) -> Pace:
    pace, memo = Pace(), StepMemo()
    for number, progress in enumerate(reports):
        pace, memo = look(pace, memo, progress, cpu, attempts[number] if attempts else 1)
    return pace


def test_one_report_measures_nothing() -> None:
    assert not after(seen(1, 0.0, 0.0)).measured


def test_speed_is_steps_over_seconds_at_the_cores_that_were_used() -> None:
    pace = after(seen(0, 0.0, 0.0), seen(20, 10.0, 5.0))
    assert pace.points == ((0.5, 2.0),)


def test_with_one_measurement_speed_is_taken_to_be_linear() -> None:
    pace = after(seen(0, 0.0, 0.0), seen(20, 10.0, 5.0), cpu=0.5)
    assert pace.rate(1.0) == pytest.approx(4.0)
    assert pace.cores_for(1.0) == pytest.approx(0.25)


def test_beyond_the_last_measurement_it_goes_on_as_between_the_last_two() -> None:
    pace = Pace(points=((1.0, 2.0), (2.0, 3.0)))
    assert pace.rate(1.5) == pytest.approx(2.5)
    assert pace.rate(4.0) == pytest.approx(5.0)
    assert pace.cores_for(5.0) == pytest.approx(4.0)


def test_a_share_that_is_left_unused_tells_how_many_cores_the_trial_can_use() -> None:
    pace = after(seen(0, 0.0, 0.0), seen(20, 10.0, 10.0), cpu=4.0)
    assert pace.most == 1.0
    assert pace.rate(8.0) == pace.rate(1.0)
    assert math.isinf(pace.cores_for(pace.rate(1.0) * 1.01))


def test_a_trial_that_uses_more_than_was_thought_possible_is_limited_no_more() -> None:
    pace, memo = look(Pace(), StepMemo(), seen(0, 0.0, 0.0), 4.0)
    pace, memo = look(pace, memo, seen(20, 10.0, 10.0), 4.0)
    assert pace.most == 1.0
    assert look(pace, memo, seen(60, 20.0, 30.0), 2.0)[0].most is None


def test_use_beyond_the_share_tells_nothing_of_a_limit() -> None:
    assert after(seen(0, 0.0, 0.0), seen(20, 10.0, 10.0), cpu=0.1).most is None


def test_a_pause_between_attempts_and_steps_made_again_are_not_measured() -> None:
    assert not after(seen(5, 0.0, 0.0), seen(6, 100.0, 1.0), attempts=(1, 2)).measured
    assert not after(seen(5, 0.0, 0.0), seen(3, 10.0, 1.0)).measured


def test_without_cpu_seconds_nothing_is_measured() -> None:
    assert not after(seen(0, 0.0, None), seen(10, 10.0, None)).measured


def test_a_newer_measurement_replaces_what_it_contradicts() -> None:
    pace = Pace(points=((1.0, 2.0), (2.0, 3.0), (4.0, 4.0)))
    _, memo = look(Pace(), StepMemo(), seen(0, 0.0, 0.0), 1.0)
    newer, _ = look(pace, memo, seen(45, 10.0, 30.0), 1.0)
    assert newer.points == ((1.0, 2.0), (2.0, 3.0), (3.0, 4.5))


amounts = st.floats(0.01, 100)
# A trial is idle below a hundredth of a core; that it is not must survive the rounding of differences.
busy_cores = st.floats(0.011, 100)


@given(st.lists(st.tuples(amounts, st.integers(1, 50), busy_cores), min_size=1, max_size=30))
def test_speed_rises_with_cores_and_the_fewest_cores_for_a_speed_give_it(
    windows: list[tuple[float, int, float]],
) -> None:
    reports, step, at, used = [seen(0, 0.0, 0.0)], 0, 0.0, 0.0
    for seconds, steps, cores in windows:
        step, at, used = step + steps, at + seconds, used + cores * seconds
        reports.append(seen(step, at, used))
    pace = after(*reports)
    assert 1 <= len(pace.points) <= MOST_POINTS
    for (c0, r0), (c1, r1) in zip(pace.points, pace.points[1:], strict=False):
        assert c0 < c1
        assert r0 < r1
    for cores in (0.005, 0.5, 3.0, 200.0):
        assert pace.rate(cores) <= pace.rate(cores * 1.5) + 1e-12
        wanted = pace.rate(cores)
        fewest = pace.cores_for(wanted * (1 - 1e-9))
        assert fewest <= cores * (1 + 1e-6)
        assert pace.rate(fewest) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(
    ("seconds", "steps", "cpu_seconds"), [(1e-300, 1, 1e308), (1e308, 1, 1e308), (1.0, 10**30, 1e308)]
)
def test_a_pace_that_makes_no_sense_stays_finite_and_forwards(seconds: float, steps: int, cpu_seconds: float) -> None:
    pace = after(seen(0, 0.0, 0.0), seen(steps, seconds, cpu_seconds))
    for cores in (0.1, 1.0, 64.0):
        assert 0 < pace.rate(cores) < math.inf
        assert 0 < pace.cores_for(pace.rate(cores)) < math.inf
