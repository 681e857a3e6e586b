"""Reports looked up afterwards are those that would have been seen one by one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Direction
from controllers.worlds.simulated.report_log import CpuUse, ReportLog
from controllers.worlds.simulated.workload import CurvePoint, TrialSpec
from tests.controllers.worlds.simulated.workloads import trial


def test_a_report_is_logged_when_its_work_is_done() -> None:
    log = ReportLog(trial("a", 100), [])
    log.go_on(10.0, 0.0, 0.5, CpuUse(3.0, 1.0))
    assert log.next_at == 30.0
    assert log.read(29.9) is None
    sample = log.read(51.0)
    assert sample is not None
    assert (sample.step, sample.at, sample.value, sample.first) == (2, 50.0, 0.5, 1.0)
    assert (sample.cpu_seconds, sample.steps_total) == (43.0, 10)


def test_work_made_anew_after_a_kill_is_not_reported_again() -> None:
    log = ReportLog(trial("a", 100), [])
    log.go_on(0.0, 0.0, 1.0, CpuUse(0.0, 1.0))
    log.go_on(35.0, 35.0, 0.0, CpuUse(35.0, 0.0))
    log.go_on(50.0, 20.0, 1.0, CpuUse(35.0, 1.0))
    sample = log.read(69.9)
    assert sample is not None
    assert (sample.step, sample.at) == (3, 30.0)
    assert log.next_at == 70.0
    again = log.read(70.0)
    assert again is not None
    assert (again.step, again.at, again.cpu_seconds) == (4, 70.0, 55.0)


def test_an_attempt_that_dies_before_it_has_caught_up_reports_nothing() -> None:
    log = ReportLog(trial("a", 100), [])
    for at, work, rate in ((0.0, 0.0, 1.0), (35.0, 35.0, 0.0), (40.0, 0.0, 1.0), (50.0, 10.0, 0.0), (60.0, 0.0, 1.0)):
        log.go_on(at, work, rate, CpuUse(0.0, 0.0))
    log.read(60.0)
    assert log.next_at == 100.0
    sample = log.read(99.0)
    assert sample is not None
    assert sample.step == 3


def test_an_attempt_that_died_at_once_leaves_no_work_behind_that_was_never_done() -> None:
    log = ReportLog(trial("a", 100), [])
    log.go_on(0.0, 0.0, 1.0, CpuUse(0.0, 1.0))
    log.go_on(35.0, 35.0, 0.0, CpuUse(35.0, 0.0))
    log.go_on(35.0, 0.0, 0.5, CpuUse(35.0, 0.5))
    sample = log.read(100.0)
    assert sample is not None
    assert sample.step == 3
    assert log.next_at == 115.0


def test_the_best_value_counts_what_nobody_has_polled() -> None:
    values = (5.0, 1.0, math.nan, 3.0)
    reports = tuple(CurvePoint(float(n), value) for n, value in enumerate(values, start=1))
    log = ReportLog(TrialSpec(trial("a").id, 0.0, 4.0, reports, 1.0), [])
    log.go_on(0.0, 0.0, 1.0, CpuUse(0.0, 1.0))
    sample = log.read(4.0)
    assert sample is not None
    assert (sample.value, sample.best) == (3.0, 1.0)


def test_the_best_of_what_grows_is_the_largest() -> None:
    reports = tuple(CurvePoint(float(n), value) for n, value in enumerate((1.0, 5.0, 3.0), start=1))
    log = ReportLog(TrialSpec(trial("a").id, 0.0, 3.0, reports, 1.0, direction=Direction.MAXIMIZE), [])
    log.go_on(0.0, 0.0, 1.0, CpuUse(0.0, 1.0))
    sample = log.read(3.0)
    assert sample is not None
    assert sample.best == 5.0


@pytest.mark.parametrize(("told", "total"), [(None, 10), (25, 25), (0, None)])
def test_a_trial_tells_the_steps_that_it_has_or_others_or_none(told: int | None, total: int | None) -> None:
    log = ReportLog(trial("a", 100, steps_told=told), [])
    log.go_on(0.0, 0.0, 1.0, CpuUse(0.0, 1.0))
    sample = log.read(10.0)
    assert sample is not None
    assert sample.steps_total == total


def test_cpu_seconds_that_are_counted_now_and_then_are_repeated_until_the_next_count() -> None:
    log = ReportLog(trial("a", 100, cpu_every_s=15.0), [])
    log.go_on(0.0, 0.0, 1.0, CpuUse(0.0, 2.0))
    told = [(sample.step, sample.cpu_seconds) for at in (10, 20, 30, 40, 50) if (sample := log.read(float(at)))]
    assert told == [(1, 20.0), (2, 20.0), (3, 60.0), (4, 60.0), (5, 100.0)]


@given(
    st.lists(st.tuples(st.floats(0.1, 20.0), st.sampled_from([0.0, 0.25, 1.0, 1.75])), min_size=1, max_size=8),
    st.integers(1, 40),
    st.sampled_from([0.0, 7.5]),
)
def test_reading_often_or_once_shows_the_same_newest_report(
    stretches: list[tuple[float, float]], reads: int, cpu_every_s: float
) -> None:
    often, once = (ReportLog(trial("a", 60, cpu_every_s=cpu_every_s), []) for _ in range(2))
    now = work = 0.0
    for seconds, rate in stretches:
        for log in (often, once):
            log.go_on(now, work, rate, CpuUse(now, 1.0))
        for part in range(1, reads + 1):
            often.read(now + seconds * part / reads)
        now, work = now + seconds, min(60.0, work + rate * seconds)
    assert often.read(now) == once.read(now)
