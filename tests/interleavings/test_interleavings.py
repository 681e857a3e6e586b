"""The controller's threads in thousands of orders, with a kill at any write: nothing is lost, doubled or done unsaved.

A failure prints its seed and its last steps: ``explore(seed)`` goes through the very same steps again.
"""

import pytest

from tests.interleavings.checks import MARKED_BEFORE_ASKED, ONE_CHANGE_AT_A_TIME, SAVED_BEFORE_DONE
from tests.interleavings.defects import (
    Spoil,
    acts_before_saving,
    asks_before_marking,
    nobody_is_busy,
    takes_it_as_written,
)
from tests.interleavings.exploration import TAGS_IN_THE_END, explore

SEED = 140_000
_BATCH = 10
_BATCHES = 6
_QUICK_BATCHES = 2
"""Those that are tried with each landing; the others take their turn."""
_ENOUGH = 60
"""Runs within which what was broken on purpose must have been found."""


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(SEED + _BATCH * number, marks=[pytest.mark.slow] * (number >= _QUICK_BATCHES))
        for number in range(_BATCHES)
    ],
)
def test_nothing_impossible_happens_in_any_order_of_the_threads(first: int) -> None:
    told = [run.story() for seed in range(first, first + _BATCH) if (run := explore(seed)).violation is not None]
    assert not told, "\n\n".join(told)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_controller_may_be_killed_at_every_single_write(part: int) -> None:
    calm = explore(SEED, crash_at=0)
    assert calm.violation is None, calm.story()
    assert calm.points > 40
    for point in range(1 + part, calm.points + 1, 4):
        run = explore(SEED, crash_at=point)
        assert run.violation is None, f"killed at write point {point}\n{run.story()}"
        assert run.crashes == 1


def test_a_seed_gives_the_same_run_again() -> None:
    assert explore(SEED) == explore(SEED)


def test_sweeps_move_and_controllers_die_in_what_is_explored() -> None:
    runs = [explore(SEED + number) for number in range(12)]
    assert sum(run.moves for run in runs) > 3
    assert sum(run.crashes for run in runs) > 3


@pytest.mark.parametrize(
    ("spoil", "invariant"),
    [
        (acts_before_saving, SAVED_BEFORE_DONE),
        (asks_before_marking, MARKED_BEFORE_ASKED),
        (nobody_is_busy, ONE_CHANGE_AT_A_TIME),
        (takes_it_as_written, TAGS_IN_THE_END),
    ],
)
def test_what_is_broken_on_purpose_is_found(spoil: Spoil, invariant: str) -> None:
    runs = (explore(seed, spoil=spoil) for seed in range(_ENOUGH))
    assert any(run.violation is not None and run.violation.invariant == invariant for run in runs)
