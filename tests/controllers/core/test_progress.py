import math
import sys
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Category, Direction, Progress, Sample
from controllers.core.progress import (
    Mark,
    Normalise,
    growth,
    growth_efficiency,
    is_stale,
    mark,
    mean_cores,
    merge,
    recategorise,
    reported_since,
    usable,
)

DOWN, UP = Direction.MINIMIZE, Direction.MAXIMIZE
values = st.floats(allow_nan=False, allow_infinity=False)
directions = st.sampled_from(Direction)


def merged(*samples: Sample, direction: Direction = DOWN) -> Progress:
    known = None
    for sample in samples:
        known = merge(known, sample, direction)
    assert known is not None
    return known


def test_the_first_finite_value_is_the_first_report_and_the_best_follows_the_direction() -> None:
    samples = (Sample(5.0, 1, 1.0), Sample(9.0, 2, 2.0), Sample(2.0, 3, 3.0), Sample(4.0, 4, 4.0))
    down, up = merged(*samples), merged(*samples, direction=UP)
    assert (down.first, down.best, down.latest, down.step, down.at) == (5.0, 2.0, 4.0, 4, 4.0)
    assert (up.first, up.best) == (5.0, 9.0)


def test_the_first_value_that_was_logged_wins_over_the_first_that_was_polled() -> None:
    assert merged(Sample(5.0, 3, 1.0, first=8.0)).first == 8.0
    assert merged(Sample(5.0, 3, 1.0), Sample(4.0, 4, 2.0, first=0.0)).first == 0.0
    assert merged(Sample(5.0, 3, 1.0, first=math.nan)).first == 5.0


def test_the_first_value_counts_as_a_candidate_for_the_best() -> None:
    assert merged(Sample(5.0, 3, 1.0, first=2.0)).best == 2.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_counted_and_changes_nothing_else(bad: float) -> None:
    known = merged(Sample(5.0, 1, 1.0, cpu_seconds=3.0), Sample(bad, 2, 2.0, cpu_seconds=4.0))
    assert known.dropped == 1
    assert (known.latest, known.best, known.step, known.at, known.cpu_seconds) == (5.0, 5.0, 1, 1.0, 3.0)


def test_polling_the_same_bad_report_again_counts_it_once() -> None:
    bad = Sample(math.nan, 2, 2.0)
    assert merged(Sample(5.0, 1, 1.0), bad, bad, bad, Sample(math.nan, 3, 3.0), bad).dropped == 2
    assert merged(Sample(5.0, 1, 1.0), bad, Sample(4.0, 3, 3.0), bad).dropped == 1


def test_nothing_is_known_before_a_finite_value() -> None:
    assert merge(None, Sample(math.nan, 1, 1.0, first=3.0), DOWN) is None


def test_an_older_report_that_comes_late_is_ignored() -> None:
    assert merged(Sample(5.0, 2, 2.0), Sample(1.0, 1, 1.0)) == merged(Sample(5.0, 2, 2.0))


def test_an_attempt_that_resumes_from_an_older_checkpoint_reports_smaller_steps_later() -> None:
    assert merged(Sample(5.0, 9, 2.0), Sample(6.0, 4, 3.0)).step == 4


@given(st.lists(st.tuples(st.floats(), st.integers(0, 5), st.integers(0, 5)), max_size=12), directions)
def test_polling_every_report_twice_changes_nothing(
    reports: list[tuple[float, int, int]], direction: Direction
) -> None:
    once = twice = None
    for value, step, at in reports:
        sample = Sample(value, step, float(at))
        once = merge(once, sample, direction)
        twice = merge(merge(twice, sample, direction), sample, direction)
    assert once == twice
    assert once is None or all(map(math.isfinite, (once.first, once.best, once.latest)))


def test_growth_is_the_share_of_all_that_was_gained() -> None:
    now = merged(Sample(10.0, 1, 1.0), Sample(4.0, 2, 2.0), Sample(2.0, 3, 3.0))
    assert growth(now, Mark(4.0, 2, 2.0), DOWN) == pytest.approx(0.25)


def test_growth_is_none_while_the_first_report_is_the_best() -> None:
    assert growth(merged(Sample(10.0, 1, 1.0), Sample(12.0, 2, 2.0)), Mark(13.0, 1, 1.0), DOWN) == 0.0


def test_getting_worse_is_no_growth_but_counts_in_the_raw_reading_of_the_papers() -> None:
    now = merged(Sample(10.0, 1, 1.0), Sample(2.0, 2, 2.0), Sample(5.0, 3, 3.0))
    assert growth(now, Mark(2.0, 2, 2.0), DOWN) == 0.0
    assert growth(now, Mark(2.0, 2, 2.0), DOWN, "none") == 3.0


@given(st.tuples(values, values, values), values, directions, st.sampled_from(get_args(Normalise)))
def test_growth_is_finite_and_never_negative(
    known: tuple[float, float, float], before: float, direction: Direction, normalise: Normalise
) -> None:
    now = Progress(*known, step=2, at=2.0)
    assert 0 <= growth(now, Mark(before, 1, 1.0), direction, normalise) <= sys.float_info.max


@given(st.lists(values, min_size=2, max_size=6))
def test_maximising_mirrors_minimising(series: list[float]) -> None:
    down = merged(*(Sample(value, i, float(i)) for i, value in enumerate(series)))
    up = merged(*(Sample(-value, i, float(i)) for i, value in enumerate(series)), direction=UP)
    assert growth(down, Mark(series[-2], 0, 0.0), DOWN) == growth(up, Mark(-series[-2], 0, 0.0), UP)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_growth_does_not_depend_on_the_unit_of_the_objective(series: list[float], scale: float, shift: float) -> None:
    series = [round(value) for value in series]

    def gain(scaled: list[float]) -> float:
        known = merged(*(Sample(value, i, float(i)) for i, value in enumerate(scaled)))
        return growth(known, Mark(scaled[-2], 0, 0.0), DOWN)

    assert gain([value * scale + shift for value in series]) == pytest.approx(gain(series), rel=1e-3, abs=1e-3)


def test_growth_efficiency_is_growth_per_second_and_core() -> None:
    now = Progress(10.0, 2.0, 2.0, 3, 30.0, cpu_seconds=100.0)
    since = Mark(4.0, 1, 10.0, cpu_seconds=60.0)
    assert mean_cores(now, since) == 2.0
    assert growth_efficiency(0.25, now, since) == pytest.approx(0.25 / 20 / 2)


@pytest.mark.parametrize("cpu", [None, 60.0, 60.1, 59.0])
def test_growth_efficiency_is_unknown_where_the_use_is_unknown_or_near_zero(cpu: float | None) -> None:
    now = Progress(10.0, 2.0, 2.0, 3, 30.0, cpu_seconds=cpu)
    assert growth_efficiency(0.25, now, Mark(4.0, 1, 10.0, cpu_seconds=60.0)) is None


def test_growth_efficiency_stays_finite_whatever_cpu_seconds_are_reported() -> None:
    now = Progress(1e308, -1e308, -1e308, 3, 10.0 + 1e-9, cpu_seconds=1e308)
    since = Mark(1e308, 1, 10.0, cpu_seconds=-1e308)
    assert mean_cores(now, since) == sys.float_info.max
    efficiency = growth_efficiency(sys.float_info.max, now, since)
    assert efficiency is not None
    assert math.isfinite(efficiency)


def test_a_report_is_stale_only_beyond_the_bound() -> None:
    known = Progress(1.0, 1.0, 1.0, 1, 10.0)
    assert not is_stale(known, 70.0, 60.0)
    assert is_stale(known, 70.1, 60.0)
    assert usable(known, 70.0, 60.0) is known
    assert usable(known, 70.1, 60.0) is None
    assert usable(None, 0.0, 60.0) is None


def test_a_mark_knows_whether_there_was_a_report_since() -> None:
    known = Progress(1.0, 1.0, 1.0, 1, 10.0)
    assert not reported_since(known, mark(known))
    assert reported_since(merged(Sample(1.0, 1, 10.0), Sample(1.0, 2, 11.0)), mark(known))


def test_categories_step_down_one_at_a_time_and_jump_back_up() -> None:
    first, second, third = Category.PROGRESSING, Category.WATCHING, Category.CONVERGED
    assert [recategorise(c, fast=False, slowing=True) for c in (first, second, third)] == [second, third, third]
    assert [recategorise(c, fast=False, slowing=False) for c in (first, second, third)] == [first, second, third]
    assert {recategorise(c, fast=True, slowing=True) for c in (first, second, third)} == {first}
