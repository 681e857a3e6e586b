"""A search as text: what survives, what is refused, and which hyperparameters matter."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.errors import SearchError
from controllers.core.parameters import bound_parameters
from controllers.search import Condition, Dimension, NumberRange, Options, SearchSpec, read_search

LR = Dimension(name="lr", domain=NumberRange(low=1e-4, high=0.1, log=True))
DEPTH = Dimension(name="depth", domain=NumberRange(low=1, high=5, whole=True))
OPTIMIZER = Dimension(name="optimizer", domain=Options(options=("sgd", "adam", True, 3)))
MOMENTUM = Dimension(
    name="momentum",
    domain=NumberRange(low=0.5, high=0.99),
    when=Condition(name="optimizer", values=("sgd",), otherwise=0.0),
)
SPEC = SearchSpec(sampler="tpe", settings={"n_startup_trials": 5}, seed=7, space=(LR, DEPTH, OPTIMIZER, MOMENTUM))


def test_a_search_survives_its_text() -> None:
    assert read_search(SPEC.written()) == SPEC


def test_its_text_holds_nothing_that_argo_takes_for_the_end_of_a_tag() -> None:
    assert "}}" not in SPEC.written()
    assert "{{" not in SPEC.written()


@given(st.integers())
def test_a_point_by_chance_lies_in_the_space_and_is_found_again_from_what_policies_see(seed: int) -> None:
    point = SPEC.by_chance(Random(seed))  # noqa: S311 - repeatable
    values = dict(point)
    assert 1e-4 <= float(values["lr"]) <= 0.1
    assert values["depth"] in {1, 2, 3, 4, 5}
    assert isinstance(values["depth"], int)
    assert (values["momentum"] == 0.0) == (values["optimizer"] != "sgd")
    assert SPEC.point_of(bound_parameters(values)) == point


def test_what_does_not_matter_was_not_drawn() -> None:
    point = (("lr", 0.01), ("depth", 2), ("optimizer", "adam"), ("momentum", 0.0))
    assert [one.name for one in SPEC.that_matter(point)] == ["lr", "depth", "optimizer"]
    point = (*point[:2], ("optimizer", "sgd"), ("momentum", 0.9))
    assert [one.name for one in SPEC.that_matter(point)] == ["lr", "depth", "optimizer", "momentum"]


@pytest.mark.parametrize("parameters", [{}, {"lr": 0.01, "depth": 2.0}, {"lr": 7.0, "depth": 2.0, "optimizer": "sgd"}])
def test_parameters_of_another_space_are_no_point(parameters: dict[str, float | str]) -> None:
    assert SPEC.point_of(bound_parameters(parameters)) is None


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"space": []}, "space"),
        ({"sampler": ""}, "sampler"),
        ({"seed": -1}, "-1"),
        ({"settings": {"popsize": 10**9}}, "1000000000"),
        ({"unheard": 1}, "unheard"),
        ({"space": [{"name": "a", "domain": {"low": 2, "high": 1}}]}, "low must be below high"),
        ({"space": [{"name": "a", "domain": {"low": 0, "high": 1, "log": True}}]}, "above 0 where log"),
        ({"space": [{"name": "a", "domain": {"low": 0.5, "high": 1, "whole": True}}]}, "whole bounds"),
        ({"space": [{"name": "a", "domain": {"options": []}}]}, "options"),
        ({"space": [{"name": "not a name", "domain": {"options": [1]}}]}, "not a name"),
        ({"space": [{"name": "a", "domain": {"options": [1]}}] * 2}, "'a' is there twice"),
        (
            {
                "space": [
                    {"name": "a", "domain": {"options": [1]}, "when": {"name": "b", "values": [1], "otherwise": 0}}
                ]
            },
            "'b', which does not come before it",
        ),
    ],
)
def test_a_text_that_is_no_search_is_refused_with_the_value(change: dict[str, object], shown: str) -> None:
    given_ = {**json.loads(SPEC.written()), **change}
    with pytest.raises(SearchError) as caught:
        read_search(json.dumps(given_))
    assert shown in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "nothing", "{" * 5000, json.dumps({"sampler": "x" * 5000})])
def test_whatever_somebody_writes_on_a_pod_is_no_search_and_no_harm(text: str) -> None:
    with pytest.raises(SearchError):
        read_search(text)
