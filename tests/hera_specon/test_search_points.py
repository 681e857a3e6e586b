from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hera_specon import SpaceError, SweepError, choice, integer, log_uniform, uniform
from hera_specon.points import points

SPACE = {"lr": log_uniform(1e-4, 1e-2), "latent": choice(2, 8, 16), "hidden": integer(32, 256)}


@given(st.permutations(sorted(SPACE)), st.integers())
def test_the_seed_alone_decides_what_is_drawn_whatever_the_order(names: list[str], seed: int) -> None:
    reordered = {name: SPACE[name] for name in names}
    assert points(reordered, "random", 5, seed) == points(SPACE, "random", 5, seed)


def test_another_hyperparameter_leaves_the_others_as_they_were() -> None:
    wider = points({**SPACE, "dropout": uniform(0, 0.5)}, "random", 5, 0)
    assert [{name: point[name] for name in SPACE} for point in wider] == list(points(SPACE, "random", 5, 0))


def test_more_trials_continue_the_same_draw() -> None:
    assert points(SPACE, "random", 9, 0)[:4] == points(SPACE, "random", 4, 0)


def test_another_seed_draws_other_points() -> None:
    assert points(SPACE, "random", 5, 0) != points(SPACE, "random", 5, 1)


def test_a_grid_takes_every_combination_the_last_name_changing_fastest() -> None:
    grid = points({"a": choice("x", "y"), "b": integer(1, 2)}, "grid", None, 0)
    assert grid == ({"a": "x", "b": 1}, {"a": "x", "b": 2}, {"a": "y", "b": 1}, {"a": "y", "b": 2})


def test_a_grid_may_be_as_large_as_trials_allows_and_no_larger() -> None:
    space = {"a": choice(1, 2, 3), "b": choice(1, 2)}
    assert len(points(space, "grid", 6, 0)) == 6
    with pytest.raises(SpaceError, match="6 points, more than trials=5"):
        points(space, "grid", 5, 0)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("random", None, 0), "trials="),
        (("random", 0, 0), "not 0"),
        (("random", -3, 0), "-3"),
        (("random", 2.0, 0), "2.0"),
        (("random", True, 0), "True"),
        (("random", 2, "x"), "'x'"),
        (("bayes", 2, 0), "'bayes'"),
        (("grid", None, 0), "'lr' is Continuous"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_with_the_value(arguments: tuple[Any, Any, Any], shown: str) -> None:
    with pytest.raises(SweepError) as caught:
        points(SPACE, *arguments)
    assert shown in str(caught.value)
