import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.lab.simulation.experiments.arrivals import (
    AllAtOnce,
    ArrivalPattern,
    FixedInterval,
    Poisson,
    Trace,
    UniformWindow,
    generator,
)
from controllers.worlds.simulated.errors import WorkloadError

PATTERNS: list[ArrivalPattern] = [AllAtOnce(), FixedInterval(50.0), UniformWindow(300.0), Poisson(20.0)]


@given(st.sampled_from(PATTERNS), st.integers(0, 30), st.integers(0, 1000))
def test_submissions_are_as_many_as_asked_for_in_order_and_the_same_for_the_same_seed(
    pattern: ArrivalPattern, trials: int, seed: int
) -> None:
    times = pattern.times(trials, generator(seed))
    assert len(times) == trials
    assert list(times) == sorted(times)
    assert all(at >= 0 for at in times)
    assert times == pattern.times(trials, generator(seed))


def test_each_pattern_keeps_to_its_parameters() -> None:
    chance = generator(3)
    assert AllAtOnce().times(2, chance) == (0.0, 0.0)
    assert FixedInterval(50.0).times(3, chance) == (0.0, 50.0, 100.0)
    assert max(UniformWindow(300.0).times(200, chance)) <= 300.0
    many = Poisson(20.0).times(4001, chance)
    assert many[0] == 0.0
    assert many[-1] / 4000 == pytest.approx(20.0, rel=0.05)
    assert Trace((0.0, 40.0, 80.0)).times(2, chance) == (0.0, 40.0)


def test_what_is_drawn_for_one_purpose_does_not_depend_on_another() -> None:
    assert generator(1, "S4", "jobs").random() == generator(1, "S4", "jobs").random()
    assert len({generator(seed, what).random() for seed in (1, 2) for what in ("jobs", "noise")}) == 4


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_an_interval_that_can_not_be_is_refused_with_its_value(seconds: float) -> None:
    for pattern in (FixedInterval, UniformWindow, Poisson):
        with pytest.raises(WorkloadError, match=f"above 0, not {seconds}"):
            pattern(seconds)


def test_a_trace_must_rise_and_be_long_enough() -> None:
    with pytest.raises(WorkloadError, match=r"submission 3 is at 5.0 s, after 40.0 s"):
        Trace((0.0, 40.0, 5.0))
    with pytest.raises(WorkloadError, match="a trace of 1 submissions is too short for 2 trials"):
        Trace((0.0,)).times(2, generator(0))
