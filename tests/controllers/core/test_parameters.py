"""Hyperparameters as policies see them: bounded, no matter who wrote them."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.parameters import bound_parameters, parameters_in


def test_numbers_texts_and_truth_values_are_kept_by_name() -> None:
    written = '{"width": 64, "lr": 1e-3, "optimiser": " adam ", "bias": true}'
    assert parameters_in(written) == (("bias", "true"), ("lr", 0.001), ("optimiser", "adam"), ("width", 64.0))


def test_a_text_that_is_a_number_counts_as_one() -> None:
    assert bound_parameters({"batch": "128", "rate": "1e-2", "name": "1st"}) == (
        ("batch", 128.0),
        ("name", "1st"),
        ("rate", 0.01),
    )


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, "", "x" * 65, "a\nb", math.nan, math.inf, 10**400, "9" * 5000])
def test_what_is_no_number_and_no_short_text_is_left_out(value: object) -> None:
    assert bound_parameters({"kept": 1, "left out": value}) == (("kept", 1.0),)


@pytest.mark.parametrize(
    "written", ["", "{", "[1]", "7", "{}" + " " * 2**14, "[" * 10_000, '{"a": ' + "9" * 5000 + "}"]
)
def test_what_is_no_json_object_of_some_length_holds_none(written: str) -> None:
    assert parameters_in(written) == ()


ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.text(max_size=80), ANY, max_size=50))
def test_whatever_is_written_what_is_kept_is_bounded_sorted_and_stays_the_same(given_: dict[str, Any]) -> None:
    found = parameters_in(json.dumps(given_))
    assert len(found) <= 32
    assert list(found) == sorted(found)
    assert all(0 < len(name) <= 64 and len(str(value)) <= 64 for name, value in found)
    assert all(math.isfinite(value) for _, value in found if isinstance(value, float))
    assert bound_parameters(dict(found)) == found
