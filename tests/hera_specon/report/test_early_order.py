"""Does the report know an early order that is no guide from one that is?"""

import math
from collections.abc import Callable

import pytest

from controllers.core.model import Direction
from controllers.core.results import RunResult, TrialResult
from hera_specon.records.history import ObjectiveReading, SweepHistory
from hera_specon.records.run_folder import PolicyRun
from hera_specon.report.early_order import early_order

STEPS = 50


def run(value: Callable[[int, float], float], trials: int = 12, stopped: int = 0) -> PolicyRun:
    """A run in which trial ``n`` has the loss ``value(n, part)`` after that part of its training."""
    reports = {
        f"t{n}": tuple(ObjectiveReading(float(step), value(n, (step + 1) / STEPS), step) for step in range(STEPS))
        for n in range(trials)
    }
    results = tuple(
        TrialResult(f"t{n}", 0.0, 50.0, "n1", 0, 1, 0.1, stopped="it lost" if n < stopped else "")
        for n in range(trials)
    )
    return PolicyRun("default", SweepHistory({}, (), reports, {}, 50.0), RunResult("default", results))


def steady(number: int, part: float) -> float:
    return 1.0 + number - 0.1 * part


def crossing(number: int, part: float) -> float:
    """The best at the end is the worst at the beginning."""
    return (1 - 2 * part) * number + 20.0


def test_trials_that_keep_their_order_agree_with_it() -> None:
    found = early_order(run(steady), Direction.MINIMIZE)
    assert found is not None
    assert (found.trials, found.before_best, found.little) == (12, 0, False)
    assert found.agreement == pytest.approx(1.0)


def test_an_early_order_that_turns_round_is_no_guide() -> None:
    found = early_order(run(crossing), Direction.MINIMIZE)
    assert found is not None
    assert found.agreement == pytest.approx(-1.0)
    assert found.before_best == 11
    assert found.little


def test_greater_is_better_where_the_objective_is_maximised() -> None:
    found = early_order(run(lambda n, part: -steady(n, part)), Direction.MAXIMIZE)
    assert found is not None
    assert found.agreement == pytest.approx(1.0)
    assert found.before_best == 0


def test_trials_that_were_ended_early_do_not_count() -> None:
    assert early_order(run(steady, trials=12, stopped=5), Direction.MINIMIZE) is None
    found = early_order(run(steady, trials=12, stopped=4), Direction.MINIMIZE)
    assert found is not None
    assert found.trials == 8


@pytest.mark.parametrize("value", [lambda _n, _part: 1.0, lambda _n, _part: math.nan])
def test_nothing_is_said_where_all_trials_are_the_same_or_none_tells_anything(
    value: Callable[[int, float], float],
) -> None:
    assert early_order(run(value), Direction.MINIMIZE) is None
