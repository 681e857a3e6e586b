"""What is said of a policy over several past sweeps: its makespans, and how often it missed a better model."""

from dataclasses import replace

import pytest
from scipy.stats import binomtest

from controllers.core.results import RunResult, TrialResult
from controllers.lab.simulation.past_sweeps.forecast import PolicyForecast
from controllers.lab.simulation.past_sweeps.over_sweeps import Rate, over_sweeps


def forecast(policy: str, makespan_s: float, missed: tuple[bool, ...] = (), *, stopped: str = "") -> PolicyForecast:
    beyond = tuple(False for _ in missed)
    return PolicyForecast(policy, (result(makespan_s, stopped),) * max(1, len(missed)), missed, beyond)


def result(makespan_s: float, stopped: str) -> RunResult:
    return RunResult("any", (TrialResult("t", 0.0, makespan_s, "n", 0, 1, 0.5, stopped=stopped),))


@pytest.mark.parametrize(("count", "sweeps"), [(0, 1), (0, 12), (1, 20), (3, 7), (50, 100), (9, 9)])
def test_of_whole_counts_the_interval_is_wilsons(count: int, sweeps: int) -> None:
    rate = Rate.of([1.0] * count + [0.0] * (sweeps - count))
    assert rate is not None
    known = binomtest(count, sweeps).proportion_ci(confidence_level=0.95, method="wilson")
    assert (rate.low, rate.high) == pytest.approx((known.low, known.high), abs=1e-12)


def test_a_sweep_counts_by_the_part_of_its_seeds() -> None:
    rate, whole = Rate.of([0.5, 0.25, 0.25, 0.0]), Rate.of([1.0, 0.0, 0.0, 0.0])
    assert rate == whole
    assert rate is not None
    assert (rate.count, rate.sweeps, rate.share) == (1.0, 4, 0.25)


def test_no_sweep_has_no_rate() -> None:
    assert Rate.of([]) is None


def test_makespans_stand_beside_the_baseline_of_the_same_sweep_and_all_sweeps_count_alike() -> None:
    pairs = [(forecast("a", 1000.0), forecast("b", 500.0)), (forecast("a", 10.0), forecast("b", 20.0))]
    found = over_sweeps(None, pairs)
    assert [makespan.ratio.mean for makespan in found.makespans] == [0.5, 2.0]
    assert found.ratio == pytest.approx(1.0)


def test_sweeps_that_cannot_tell_are_not_counted_and_those_without_an_early_end_are() -> None:
    baseline = forecast("a", 1.0)
    ends, keeps = forecast("b", 1.0, (True, False), stopped="why"), forecast("b", 1.0, (False, False))
    alike = forecast("b", 1.0)
    found = over_sweeps(0.05, [(replace(baseline, results=of.results), of) for of in (ends, keeps, alike)])
    assert found.missed is not None
    assert (found.missed.count, found.missed.sweeps, found.promise) == (0.5, 2, 0.05)
    assert found.missed_beyond_noise is not None
    assert found.missed_beyond_noise.count == 0.0


def test_a_policy_that_ends_no_trial_early_has_no_rate() -> None:
    quiet = forecast("b", 1.0, (False, False))
    assert over_sweeps(None, [(quiet, quiet)]).missed is None
