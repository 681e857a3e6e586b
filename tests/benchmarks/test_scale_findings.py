"""What the benchmark at scale makes of the controller's own metrics."""

import pytest

from benchmarks.scale.findings import tick_quantile
from benchmarks.scale.steering import Reading

_BUCKET = "specon_tick_duration_seconds_bucket"


def reading(**upto: float) -> Reading:
    """Return a reading with so many ticks up to each bound, such as ``le_0_5``."""
    values = {name.removeprefix("le_").replace("_", "."): count for name, count in upto.items()}
    named = {f"{_BUCKET}/{'+Inf' if bound == 'inf' else bound}": count for bound, count in values.items()}
    return Reading(at=0.0, memory=0, cpu=0.0, ran=0.0, waited=0.0, values=named)


def test_a_quantile_lies_in_the_bucket_that_reaches_it() -> None:
    first, last = reading(le_0_1=0, le_0_5=0, le_1_0=0, le_inf=0), reading(le_0_1=50, le_0_5=90, le_1_0=100, le_inf=100)
    assert tick_quantile(0.5, first, last) == pytest.approx(0.1)
    assert tick_quantile(0.7, first, last) == pytest.approx(0.3)
    assert tick_quantile(0.95, first, last) == pytest.approx(0.75)


def test_ticks_before_the_first_reading_do_not_count() -> None:
    first, last = reading(le_0_1=1000, le_0_5=1000, le_inf=1000), reading(le_0_1=1000, le_0_5=1010, le_inf=1010)
    assert tick_quantile(0.5, first, last) == pytest.approx(0.3)


def test_beyond_the_greatest_bound_that_bound_is_told() -> None:
    assert tick_quantile(0.95, reading(le_0_1=0, le_inf=0), reading(le_0_1=1, le_inf=10)) == 0.1


def test_no_ticks_take_no_time() -> None:
    same = reading(le_0_1=5, le_inf=5)
    assert tick_quantile(0.5, same, same) == 0.0
    assert tick_quantile(0.5, reading(), reading()) == 0.0
