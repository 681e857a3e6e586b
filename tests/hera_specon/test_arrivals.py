import pytest
from hypothesis import given
from hypothesis import strategies as st

from hera_specon import SweepError, at_random, every


def test_trials_arrive_one_interval_apart_the_first_at_once() -> None:
    assert every(50).delays(3) == (0, 50, 100)


@given(st.floats(0.1, 1e6), st.integers())
def test_random_arrivals_lie_within_the_window_and_repeat_with_the_seed(within: float, seed: int) -> None:
    delays = at_random(within, seed).delays(20)
    assert all(0 <= delay <= within + 0.05 for delay in delays)
    assert delays == at_random(within, seed).delays(20)


def test_random_arrivals_differ_from_trial_to_trial() -> None:
    assert len(set(at_random(300, seed=1).delays(10))) > 5


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "50", True])
def test_arrivals_that_take_no_time_are_refused(seconds: float) -> None:
    with pytest.raises(SweepError, match=repr(seconds)):
        every(seconds)
    with pytest.raises(SweepError, match=repr(seconds)):
        at_random(seconds)
