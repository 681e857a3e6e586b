from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hera_specon import SpaceError, choice, integer, log_uniform, uniform
from hera_specon.space import check_space

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
positive = st.floats(min_value=1e-300, max_value=1e300)
seeds = st.integers()


def chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - repeatable, guards no secret


def ranges(of: st.SearchStrategy[float]) -> st.SearchStrategy[list[float]]:
    return st.lists(of, min_size=2, max_size=2, unique=True).map(sorted)


@given(ranges(finite), seeds)
def test_uniform_draws_stay_in_the_range_and_repeat_with_the_seed(bounds: list[float], seed: int) -> None:
    value = uniform(*bounds).draw(chance(seed))
    assert bounds[0] <= value <= bounds[1]
    assert value == uniform(*bounds).draw(chance(seed))


@given(ranges(positive), seeds)
def test_log_uniform_draws_stay_in_the_range_and_repeat_with_the_seed(bounds: list[float], seed: int) -> None:
    value = log_uniform(*bounds).draw(chance(seed))
    assert bounds[0] <= value <= bounds[1]
    assert value == log_uniform(*bounds).draw(chance(seed))


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.booleans(), seeds)
def test_integer_draws_are_whole_and_in_the_range(low: int, width: int, log: bool, seed: int) -> None:  # noqa: FBT001 - drawn
    value = integer(low, low + width, log=log).draw(chance(seed))
    assert isinstance(value, int)
    assert low <= value <= low + width


def test_integer_reaches_both_ends() -> None:
    for log in (False, True):
        chances = chance(0)
        assert {integer(1, 4, log=log).draw(chances) for _ in range(200)} == {1, 2, 3, 4}


def test_log_ranges_give_each_power_of_ten_the_same_chance() -> None:
    chances = chance(0)
    draws = [log_uniform(1e-4, 1e-2).draw(chances) for _ in range(2000)]
    assert 0.45 < sum(value < 1e-3 for value in draws) / len(draws) < 0.55


@given(st.lists(st.integers() | st.sampled_from(["relu", "tanh"]), min_size=1, unique=True), seeds)
def test_choice_draws_one_of_its_options(options: list[Any], seed: int) -> None:
    assert choice(*options).draw(chance(seed)) in options


def test_draws_are_as_short_as_a_person_would_write_them() -> None:
    assert len(str(uniform(0, 1).draw(chance(3)))) <= len("0.123456")


def test_a_range_too_narrow_for_short_numbers_still_varies() -> None:
    chances = chance(0)
    assert len({uniform(1.00000001, 1.00000002).draw(chances) for _ in range(5)}) == 5


@pytest.mark.parametrize(
    ("build", "shown"),
    [
        (lambda: uniform(2, 1), "low=2, high=1"),
        (lambda: uniform(1, 1), "low=1, high=1"),
        (lambda: uniform(0, float("inf")), "inf"),
        (lambda: uniform(float("nan"), 1), "nan"),
        (lambda: log_uniform(0, 1), "low=0"),
        (lambda: log_uniform(-1, 1), "low=-1"),
        (lambda: integer(3, 3), "low=3, high=3"),
        (lambda: integer(0, 8, log=True), "low=0"),
        (lambda: integer(1.5, 3), "1.5"),  # type: ignore[arg-type]  # what an untyped script may pass
        (lambda: uniform(0, "1"), "'1'"),  # type: ignore[arg-type]  # what an untyped script may pass
        (lambda: uniform(low=False, high=1), "False"),
        (choice, "at least one"),
        (lambda: choice(1, 2, 1), "1 more than once"),
        (lambda: choice([2, 8]), "[2, 8]"),  # type: ignore[arg-type]  # an easy mistake
        (lambda: choice(None), "None"),  # type: ignore[arg-type]  # what an untyped script may pass
        (lambda: choice(float("nan")), "nan"),
        (lambda: choice('say "hi"'), "say"),
        (lambda: choice("it's"), "it's"),
        (lambda: choice("a\nb"), r"a\nb"),
        (lambda: choice("{{item}}"), "{{item}}"),
        (lambda: check_space({}), "{}"),
        (lambda: check_space({"lr": 0.1}), "'lr' is 0.1"),
        (lambda: check_space({"weight decay": uniform(0, 1)}), "'weight decay'"),
        (lambda: check_space({"lambda": uniform(0, 1)}), "'lambda'"),
        (lambda: check_space({"trial": uniform(0, 1)}), "'trial'"),
        (lambda: check_space({3: uniform(0, 1)}), "3"),
    ],
)
def test_what_makes_no_search_space_is_refused_with_the_value(build: Callable[[], object], shown: str) -> None:
    with pytest.raises(SpaceError) as caught:
        build()
    assert shown in str(caught.value)
