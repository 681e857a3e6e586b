"""Trials that need more memory than there is, in a control group of so much, with real processes."""

from typing import Any

import pytest

from benchmarks.scarce_memory import NoControlGroupError, measured

KINDS = ("any", "pacer")


def ran(sizes: list[int], limit: int, kind: str) -> dict[str, Any]:
    try:
        return measured(sizes, limit, kind)
    except NoControlGroupError as error:
        pytest.skip(f"SCARCE MEMORY IS NOT TRIED: {error}")


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_trials_run_at_a_time_as_the_memory_holds(kind: str) -> None:
    found = ran([150] * 12, 600, kind)
    assert (found["succeeded"], found["killed"], found["attempts"]) == (12, 0, 12), found
    # Three fit; one that ends may be counted beside the one that begins in its place.
    assert 2 <= found["at_once"] <= 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_trial_that_is_killed_for_memory_is_tried_again_alone(kind: str) -> None:
    found = ran([20, 20, 20, 20, 300, 300, 300], 600, kind)
    assert (found["succeeded"], found["failures"]) == (7, 0), found
    assert found["killed"] >= 1
    assert found["attempts"] == 7 + found["killed"]
    assert "was killed for want of memory" in found["told"][0]
    assert found["told"][0].endswith("it is tried once more, alone, which counts as no failure")


def test_a_trial_that_needs_more_than_there_is_fails_and_says_so() -> None:
    found = ran([20, 900], 600, "any")
    assert (found["succeeded"], found["killed"], found["failures"], found["attempts"]) == (1, 2, 1, 3), found
    assert "it needs more memory than there is, and has failed" in found["told"][-1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_trials_of_600_mb_come_through_in_4_gb(kind: str) -> None:
    found = ran([600] * 100, 4000, kind)
    assert found["succeeded"] == 100, found
    assert found["failures"] == 0
