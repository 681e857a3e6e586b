"""Hyperband and PASHA with trials that wait: who trains how far, and what is left to do at the end."""

import numpy as np
import pytest

from benchmarks.train_promote.pausing_rules import (
    Hyperband,
    HyperbandScheduler,
    Pasha,
    PashaScheduler,
    Rungs,
    levels,
    paused,
)
from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats


def flat(*ends: float) -> Floats:
    """Return curves that stay where they are."""
    return np.repeat(np.array(ends, float)[:, None], PARTS, axis=1)


def test_the_best_that_waits_goes_on_once_it_is_within_the_quantile() -> None:
    rungs = Rungs(levels(4, 2))
    rungs.arrives(0, 4, 1.0)
    assert rungs.promoted(PARTS) is None
    rungs.arrives(1, 4, 2.0)
    assert rungs.promoted(PARTS) == (0, 8)
    assert rungs.promoted(PARTS) is None
    rungs.arrives(2, 4, 0.5)
    assert rungs.promoted(4) is None
    assert rungs.promoted(8) == (2, 8)


def test_a_trial_at_the_quantile_itself_goes_on() -> None:
    rungs = Rungs(levels(4, 2))
    for trial in range(3):
        rungs.arrives(trial, 4, float(trial))
    assert [rungs.promoted(PARTS) for _ in range(3)] == [(0, 8), (1, 8), None]


def test_a_trial_of_the_highest_rung_goes_on_before_those_below() -> None:
    rungs = Rungs([4, 16])
    for trial, part in enumerate((4, 4, 16, 16)):
        rungs.arrives(trial, part, float(trial))
    assert rungs.promoted(PARTS) == (2, PARTS)
    assert rungs.promoted(PARTS) == (0, 16)


def test_each_bracket_begins_at_a_rung_of_its_own_and_the_last_trains_to_the_end() -> None:
    values = np.random.default_rng(0).normal(size=(200, PARTS))
    scheduler = HyperbandScheduler(values, 4, 2)
    assert [bracket.first() for bracket in scheduler.brackets] == [4, 8, 16, 32, PARTS]
    assert scheduler.odds[0] > 2 * scheduler.odds[-1]
    made, _ = paused(len(values), 4, scheduler)
    for trial, bracket in scheduler.dealt.items():
        assert made[trial] in [*bracket.levels, PARTS]
    assert all(made[trial] == PARTS for trial, bracket in scheduler.dealt.items() if not bracket.levels)


def test_pasha_stays_at_its_second_rung_where_the_order_never_changes() -> None:
    scheduler = PashaScheduler(flat(*np.random.default_rng(0).permutation(60)), 1, 3)
    made, _ = paused(60, 4, scheduler)
    assert (max(made), scheduler.cap, scheduler.epsilon) == (3, 3, 0.0)


def test_pasha_goes_to_the_end_where_the_order_turns_over_at_each_rung() -> None:
    values = flat(*np.random.default_rng(0).permutation(60))
    for rung in (1, 3, 9, 27):
        values[:, rung:] = -values[:, rung:]
    made, _ = paused(60, 4, PashaScheduler(values, 1, 3))
    assert max(made) == PARTS


def reported(values: Floats) -> PashaScheduler:
    """Return PASHA once each trial in turn has come to its second rung, at part 3."""
    scheduler = PashaScheduler(values, 1, 3)
    for trial in range(len(values)):
        scheduler.report(trial, 1)
    for trial in range(len(values)):
        scheduler.report(trial, 2)
        scheduler.report(trial, 3)
    return scheduler


def test_pasha_takes_for_noise_what_separates_most_curves_that_cross_twice() -> None:
    values = flat(0.0, 1.0, 10.0, 12.0)
    values[1, 1] = -1.0
    assert reported(values).epsilon == 1.0
    values[3, 1] = 9.0
    assert reported(values).epsilon == pytest.approx(1.9)


@pytest.mark.parametrize(("apart", "cap"), [(0.5, 3), (1.5, 9)])
def test_pasha_goes_further_only_where_an_order_turns_over_that_is_clearer_than_noise(apart: float, cap: int) -> None:
    values = flat(0.0, 1.0, 10.0, 10.0 + apart)
    values[1, 1] = -1.0
    values[2, 2:] = 11.0 + apart
    assert reported(values).cap == cap


def test_pasha_trains_its_best_to_the_end_and_that_counts() -> None:
    values = flat(*range(60))
    values[1, -1] = -1.0
    one, four = Pasha(1, 3, 1).run(values, 4), Pasha(1, 3, 4).run(values, 4)
    _, searched = paused(60, 4, PashaScheduler(values, 1, 3))
    assert one.makespan == four.makespan == pytest.approx((searched + 0.02 + 47 / 50) / (15 * 1.02))
    assert one.regret > 0.0
    assert four.regret == 0.0


def test_hyperband_whose_trials_all_wait_trains_the_best_of_the_highest_rung() -> None:
    end = Hyperband(1, 2).run(flat(2.0, 1.0, 3.0), 1)
    assert end.regret >= 0.0
    assert end.makespan > 1.02 / (3 * 1.02)


def test_pasha_with_too_few_rungs_is_refused() -> None:
    with pytest.raises(ValueError, match="needs 3 rungs"):
        PashaScheduler(flat(1.0, 2.0), 8, 4)
