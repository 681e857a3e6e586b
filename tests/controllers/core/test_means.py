"""What a sweep may take stands in annotations that anybody may have written."""

import math

import pytest

from controllers.core.means import NO_MEANS, Means, means_in, means_notes, together


def test_what_is_written_is_read() -> None:
    asked = Means(5400.0, 12.5)
    assert means_in(means_notes(asked)) == asked
    assert means_notes(NO_MEANS) == {}


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-1", "0", "1e300"])
def test_nonsense_counts_as_nothing(text: str) -> None:
    notes = dict.fromkeys(means_notes(Means(1.0, 1.0)), text)
    assert means_in(notes) == NO_MEANS


def test_several_sweeps_end_by_the_earliest_time_and_spend_what_they_have_together() -> None:
    assert together([Means(100.0, 5.0), Means(50.0, 7.0)]) == Means(50.0, 12.0)


def test_a_sweep_without_a_budget_leaves_all_without() -> None:
    assert together([Means(100.0, 5.0), Means(None, None)]) == Means(100.0, None)
    assert not together([NO_MEANS])
    assert math.isfinite(together([Means(100.0)]).by_s or math.inf)
