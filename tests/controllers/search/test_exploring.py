"""What a clone trains with: its parent's hyperparameters, changed within the ranges of their search."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Clone, Exploration
from controllers.core.errors import SearchError
from controllers.core.model import Parameters, TrialId
from controllers.core.parameters import bound_parameters
from controllers.search import Condition, Dimension, NumberRange, Options, SearchSpec, explored
from tests.controllers.policies.policy_fakes import trial

SPACE = (
    Dimension(name="lr", domain=NumberRange(low=1e-4, high=1.0, log=True)),
    Dimension(name="dropout", domain=NumberRange(low=0.0, high=0.5, step=0.1)),
    Dimension(name="width", domain=NumberRange(low=8, high=64, whole=True)),
    Dimension(name="optimizer", domain=Options(options=("sgd", "adam"))),
    Dimension(
        name="momentum",
        domain=NumberRange(low=0.5, high=0.99),
        when=Condition(name="optimizer", values=("sgd",), otherwise=0),
    ),
)
SPEC = SearchSpec(sampler="random", space=SPACE)
PARENT: Parameters = bound_parameters({"lr": 0.01, "dropout": 0.3, "width": 24, "optimizer": "sgd", "momentum": 0.9})


def clone(parameters: Parameters = PARENT, **explore: Any) -> dict[str, Any]:  # noqa: ANN401 - of Exploration
    one, other = (trial(name, search=SPEC.written(), parameters=parameters) for name in ("t1", "t2"))
    given = Exploration(**{"factors": (0.8, 1.2), **explore})
    return dict(explored(one, other, Clone(TrialId("t1"), TrialId("t2"), given)))


def test_real_numbers_are_multiplied_by_one_of_the_factors_and_all_else_is_the_parents() -> None:
    seen = [clone(seed=str(seed)) for seed in range(50)]
    assert {point["lr"] for point in seen} == {0.008, 0.012}
    assert {point["dropout"] for point in seen} == {0.2, 0.4}
    assert {point["momentum"] for point in seen} == {0.72, 0.99}
    assert {(point["width"], point["optimizer"]) for point in seen} == {(24, "sgd")}


def test_whole_numbers_and_options_change_where_they_are_named() -> None:
    seen = [clone(seed=str(seed), names=("width", "optimizer")) for seed in range(50)]
    assert {point["width"] for point in seen} == {19, 29}
    assert {point["optimizer"] for point in seen} == {"sgd", "adam"}
    assert {point["lr"] for point in seen} == {0.01}
    assert {point["momentum"] for point in seen if point["optimizer"] == "adam"} == {0}


def test_a_whole_number_changes_by_one_at_least() -> None:
    seen = {clone(seed=str(seed), names=("width",), factors=(0.99, 1.01))["width"] for seed in range(20)}
    assert seen == {23, 25}


def test_what_did_not_matter_is_drawn_once_it_does() -> None:
    without = bound_parameters({**dict(PARENT), "optimizer": "adam", "momentum": 0})
    seen = [clone(without, seed=str(seed), names=("optimizer", "momentum")) for seed in range(50)]
    assert {point["momentum"] for point in seen if point["optimizer"] == "adam"} == {0}
    assert all(0.5 <= point["momentum"] <= 0.99 for point in seen if point["optimizer"] == "sgd")


def test_values_that_are_drawn_again_come_from_the_whole_range() -> None:
    drawn = {clone(seed=str(seed), resample=1.0)["lr"] for seed in range(50)}
    assert len(drawn) == 50
    assert min(drawn) < 1e-3
    assert max(drawn) > 0.1


@given(seed=st.text(max_size=5), factors=st.lists(st.floats(0.01, 100), max_size=3), resample=st.floats(0, 1))
def test_every_value_is_one_that_the_search_could_have_found(seed: str, factors: list[float], resample: float) -> None:
    names = ("lr", "dropout", "width", "optimizer", "momentum")
    point = clone(seed=seed, factors=tuple(factors), resample=resample, names=names)
    assert SPEC.point_of(bound_parameters(point)) == tuple(point.items())
    assert clone(seed=seed, factors=tuple(factors), resample=resample, names=names) == point


def test_what_makes_no_sense_is_told() -> None:
    with pytest.raises(SearchError, match=re.escape("no hyperparameter 'rate' to change: there are dropout, lr")):
        clone(names=("rate",))
    with pytest.raises(SearchError, match="not in the ranges"):
        clone(parameters=(("lr", 3.0),))
    whole = SearchSpec(sampler="random", space=SPACE[2:4]).written()
    one, other = (trial(name, search=whole, parameters=PARENT) for name in ("t1", "t2"))
    with pytest.raises(SearchError, match="no hyperparameter is a real number"):
        explored(one, other, Clone(one.id, other.id))
    with pytest.raises(SearchError, match="of one search"):
        explored(trial("t1", search=whole), trial("t2"), Clone(one.id, other.id))
