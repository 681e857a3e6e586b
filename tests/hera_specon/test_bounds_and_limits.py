"""What a space, a search or an objective cannot be is refused where it is written, in words of our own."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core import labels
from controllers.core.model import Direction, TrialId
from controllers.search import read_search
from controllers.search.optuna_search import Study
from hera_specon import SpaceError, SweepError, choice, grid, integer, log_uniform, minimize, tpe, uniform, when
from hera_specon.points import points
from tests.hera_specon.built_sweeps import built


@pytest.mark.parametrize(
    ("build", "shown"),
    [
        (lambda: uniform(-1e308, 1e308), "wider than the greatest number"),
        (lambda: uniform(0, 10**400), "no bound of such a range"),
        (lambda: uniform(0, 10**5000), "thousands of digits is no bound"),
        (lambda: integer(1, 10**400, log=True), "bounds lie from -9223372036854775807"),
        (lambda: integer(-(10**5000), 0), "thousands of digits"),
        (lambda: choice(10**400), "finite numbers"),
        (lambda: choice(10**5000), "thousands of digits"),
        (lambda: choice((64, 64)), "'64 64'"),  # type: ignore[arg-type]  # an easy mistake
        (lambda: uniform(0, 1, step=0), "step= is above 0 and at most high - low, not 0"),
        (lambda: uniform(0, 1, step=2), "not 2"),
        (lambda: uniform(0, 1, step=float("nan")), "not nan"),
        (lambda: uniform(0, 1, step=1e-9), "more than 1000000 parts"),
        (lambda: integer(0, 8, step=0.5), "not 0.5"),  # type: ignore[arg-type]  # what an untyped script may pass
        (lambda: integer(1, 8, log=True, step=2), "logarithmic range has no step="),
    ],
)
def test_a_range_that_gives_no_usable_values_is_refused_where_it_is_written(
    build: Callable[[], object], shown: str
) -> None:
    with pytest.raises(SpaceError) as caught:
        build()
    assert shown in str(caught.value)
    assert len(str(caught.value)) < 400


@given(st.integers(-100, 100), st.integers(1, 50), st.integers(1, 30), st.integers())
def test_a_step_keeps_whole_numbers_on_it(low: int, width: int, step: int, seed: int) -> None:
    if step > width:
        return
    drawn = integer(low, low + width, step=step).draw(Random(seed))  # noqa: S311 - repeatable
    assert drawn in range(low, low + width + 1, step)


def test_numbers_on_a_step_are_written_as_a_person_would_write_them() -> None:
    assert uniform(0, 0.5, step=0.1).values() == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    assert uniform(0.1, 0.45, step=0.1).values() == (0.1, 0.2, 0.3, 0.4)
    assert {uniform(0, 0.3, step=0.1).draw(Random(seed)) for seed in range(40)} == {0.0, 0.1, 0.2, 0.3}  # noqa: S311
    assert list(integer(32, 100, step=32).values()) == [32, 64, 96]


def test_a_grid_takes_ranges_with_a_step() -> None:
    space = {"dropout": uniform(0, 0.2, step=0.1), "width": integer(16, 32, step=16)}
    found = points(space, grid(), None, 0)
    assert [tuple(point.values()) for point in found] == [
        (0.0, 16),
        (0.0, 32),
        (0.1, 16),
        (0.1, 32),
        (0.2, 16),
        (0.2, 32),
    ]


def test_a_grid_over_a_range_too_wide_to_list_is_refused_at_once() -> None:
    with pytest.raises(SpaceError, match="18446744073709551615 points"):
        points({"seed": integer(-(2**63) + 1, 2**63 - 1)}, grid(), None, 0)


def test_a_condition_on_a_very_wide_range_is_checked_at_once() -> None:
    space = {"seed": integer(0, 2**62), "b": when("seed", 5, choice(1), otherwise=0)}
    assert points(space, "random", 1, 0)


def test_a_search_draws_on_the_steps() -> None:
    space = {"dropout": uniform(0, 0.45, step=0.1), "width": integer(32, 100, step=32)}
    spec = read_search(
        built(space=space, search=tpe())["vae-trial"]["metadata"]["annotations"][labels.ANNOTATION_SEARCH]
    )
    study = Study(spec, (Direction.MINIMIZE,), 0)
    asked = [dict(study.ask(TrialId(f"t{number}"))) for number in range(20)]
    by_chance = [dict(spec.by_chance(Random(number))) for number in range(20)]  # noqa: S311 - repeatable
    for point in (*asked, *by_chance):
        assert point["dropout"] in {0.0, 0.1, 0.2, 0.3, 0.4}
        assert point["width"] in {32, 64, 96}


SEARCHED: dict[str, tuple[dict[str, Any], str]] = {
    "long text": ({"space": {"model": choice("org/" + "a" * 61, "b")}}, "'model': a search takes texts of at most 64"),
    "many options": ({"space": {"depth": choice(*range(65))}}, "'depth': a search takes at most 64 values"),
    "many hyperparameters": ({"space": {f"p{i}": uniform(0, 1) for i in range(33)}}, "at most 32"),
    "long text of when": (
        {"space": {"a": choice(1, 2), "b": when("a", 1, choice("x"), otherwise="y" * 65)}},
        "'b': a search takes texts of at most 64",
    ),
    "great number": ({"space": {"seed": integer(0, 2**60)}}, "'seed': a search takes whole numbers"),
    "great setting": ({"search": tpe(n_startup_trials=20_000)}, "n_startup_trials= is a number from -10000 to 10000"),
    "long setting": ({"search": tpe(x="y" * 65)}, "x= is a number"),
    "many settings": ({"search": tpe(**{f"s{i}": 1 for i in range(17)})}, "at most 16 settings, not 17"),
}


@pytest.mark.parametrize("case", SEARCHED)
def test_what_a_search_cannot_take_is_told_with_its_name_and_limit(case: str) -> None:
    settings, shown = SEARCHED[case]
    with pytest.raises(SweepError) as caught:
        built(**{"search": tpe(), **settings})
    assert shown in str(caught.value)
    assert "Input should" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("val/AR@100", "holds '@', and may hold letters, digits, spaces and _ - . : / only"),
        ("", "1 to 250 characters"),
        ("x" * 251, "1 to 250 characters"),
        ("a//b", "as a path it is another, 'a/b'"),
        ("../loss", "as a path"),
    ],
)
def test_an_objective_that_mlflow_cannot_keep_is_refused_with_what_is_wrong_in_it(name: str, shown: str) -> None:
    with pytest.raises(SweepError) as caught:
        minimize(name)
    assert shown in str(caught.value)


def test_ranges_at_the_edge_of_what_is_allowed_draw_within_them() -> None:
    for seed in range(20):
        assert 1 <= integer(1, 2**63 - 1, log=True).draw(Random(seed)) < 2**63  # noqa: S311 - repeatable
        assert 5e-324 <= log_uniform(5e-324, 1e308).draw(Random(seed)) <= 1e308  # noqa: S311
