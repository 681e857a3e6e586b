"""What a sweep may say of its weight, and what is told of its place: bounded, since anybody may have written it."""

import json

import pytest

from controllers.core.labels import ANNOTATION_QUEUE
from controllers.core.queue_places import (
    MOST_WRITTEN,
    QueuePlace,
    annotation_of,
    places_in,
    priority_in,
    weight_in,
    why_no_priority,
    why_no_weight,
)


def test_what_is_written_is_read_again() -> None:
    place = QueuePlace("ahead", 2.0, -3, 4, 5, 1, 8.25, 16.0, "1 nvidia.com/gpu", "", 2, 1000.0, 2000.0, "because")
    assert places_in({annotation_of("ahead"): place.written(), "hera-specon.io/asked": "{}"}) == [place]
    assert len(place.written()) < MOST_WRITTEN


@pytest.mark.parametrize(
    "written",
    ["", "[]", "null", "{", "[" * 100_000, "9" * 5000, '{"reason": "' + "x" * MOST_WRITTEN + '"}'],
)
def test_what_is_no_place_tells_nothing(written: str) -> None:
    assert places_in({f"{ANNOTATION_QUEUE}x": written}) == []


def test_fields_of_another_kind_or_out_of_bounds_are_as_if_absent() -> None:
    told = {
        "weight": float("nan"),
        "priority": 10**400,
        "running": True,
        "waiting": "many",
        "has_cpu": float("inf"),
        "reason": "y" * 1000,
        "policy": 3,
    }
    (place,) = places_in({f"{ANNOTATION_QUEUE}x": json.dumps(told)})
    assert place == QueuePlace(reason="y" * 200)


@pytest.mark.parametrize(
    ("written", "weight"),
    [("2.5", 2.5), ("", 1.0), ("nan", 1.0), ("inf", 1.0), ("1e9", 100.0), ("-4", 0.01), ("much", 1.0)],
)
def test_a_weight_is_moved_into_its_bounds(written: str, weight: float) -> None:
    assert weight_in(written) == weight


@pytest.mark.parametrize(
    ("written", "priority"), [("7", 7), ("-7", -7), ("", 0), ("999", 100), ("-999", -100), ("9" * 99, 0), ("1.5", 0)]
)
def test_a_priority_is_moved_into_its_bounds(written: str, priority: int) -> None:
    assert priority_in(written) == priority


def test_authors_are_told_what_is_wrong() -> None:
    assert why_no_weight(2) is why_no_weight(0.01) is why_no_priority(-100) is None
    assert "not 0" in str(why_no_weight(0))
    assert "not [2]" in str(why_no_weight([2]))
    assert "not 'high'" in str(why_no_priority("high"))
    assert "not 101" in str(why_no_priority(101))
