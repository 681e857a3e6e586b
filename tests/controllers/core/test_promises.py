"""What a promised risk came to is kept in the reasons of stops, and told in words and numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.annotations import MOST_REASON
from controllers.core.promises import PromiseKept, kept_in, promises_told
from controllers.core.stop_rules import ENDED, why_ended

KEPT = PromiseKept(0.05, 0.172, 12, 100)


@given(st.floats(0.0001, 0.2), st.floats(0, 1), st.integers(0, 10_000), st.integers(1, 10_000))
def test_what_is_written_is_read_back_and_fits_into_a_cluster_s_annotation(
    promise: float, left: float, trained: int, trials: int
) -> None:
    written = PromiseKept(promise, left, trained, trials).written()
    assert len(written) <= MOST_REASON
    read = kept_in(written)
    assert read is not None
    assert read.promise == pytest.approx(promise, rel=0.02)
    assert read.left == pytest.approx(left, abs=0.0006)
    assert (read.trained, read.trials) == (trained, trials)


@pytest.mark.parametrize("reason", ["", "stopped", "promise kept: 0.0, 0.1 left, 1 of 2", f"{ENDED}3 h have passed"])
def test_other_reasons_tell_of_no_promise(reason: str) -> None:
    assert kept_in(reason) is None
    assert promises_told([("vae", reason)]) == {}


def test_a_promise_is_told_in_words_and_in_numbers_by_sweep() -> None:
    stopped = [("vae", ""), ("vae", KEPT.written()), ("vae", KEPT.written()), ("gru", "it converged")]
    assert promises_told(stopped) == {"vae": {"promise": 0.05, "left": 0.172, "trained": 12, "stopped": 2}}
    (why,) = why_ended(stopped).values()
    assert why.startswith(
        "the promised risk of 5 % is kept: about one in 20 sweeps misses a model more than 1 % better"
    )
    assert "12 of 100 trials were trained to their end" in why
    assert "with a probability of 17%" in why


def test_where_trials_were_stopped_at_several_times_the_last_of_them_tells_of_all() -> None:
    stops = [
        PromiseKept(0.05, left, trained, trials).written() for left, trained, trials in ((0.1, 2, 5), (0.14, 3, 9))
    ]
    for order in (stops, stops[::-1]):
        told = promises_told([("vae", stop) for stop in order])
        assert told == {"vae": {"promise": 0.05, "left": 0.14, "trained": 3, "stopped": 2}}
