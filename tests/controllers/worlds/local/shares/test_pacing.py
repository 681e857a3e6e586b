import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.worlds.local.shares.pacing import PERIOD_S, Paced, open_period, split

amounts = st.floats(0.001, 100)
claims = st.dictionaries(st.text(min_size=1, max_size=3), st.tuples(amounts, amounts), min_size=1, max_size=6)


@given(amounts, claims)
def test_a_split_gives_all_there_is_or_all_that_is_wanted(
    total: float, claimed: dict[str, tuple[float, float]]
) -> None:
    weights = {key: weight for key, (weight, _) in claimed.items()}
    caps = {key: cap for key, (_, cap) in claimed.items()}
    parts = split(total, weights, caps)
    assert sum(parts.values()) == pytest.approx(min(total, sum(caps.values())))
    assert all(0 <= parts[key] <= caps[key] for key in parts)
    open_keys = [key for key in parts if parts[key] < caps[key] * (1 - 1e-9)]
    for key in open_keys:
        for other in parts:
            # One that could use more has at least as much for its weight as any other.
            assert parts[key] / weights[key] >= parts[other] / weights[other] * (1 - 1e-6)


def simulated(quota: float, appetites: dict[str, float], weights: dict[str, float], periods: int) -> dict[str, float]:
    """Return the cores each used, of trials that use ``appetites`` cores while they may run."""
    trials = {key: Paced(weight) for key, weight in weights.items()}
    used = dict.fromkeys(weights, 0.0)
    step = PERIOD_S / 40
    for _ in range(periods):
        open_period(trials, quota)
        for _ in range(40):
            for key, trial in trials.items():
                eaten = appetites[key] * step if trial.may_run else 0.0
                trial.note(eaten, step if trial.may_run else 0.0)
                used[key] += eaten
        for trial in trials.values():
            trial.close_period()
    return {key: cpu / (periods * PERIOD_S) for key, cpu in used.items()}


@given(st.floats(0.1, 0.9), st.floats(0.1, 0.9))
def test_busy_trials_get_the_quota_by_weight(quota: float, weight: float) -> None:
    used = simulated(quota, {"a": 1.0, "b": 1.0}, {"a": weight, "b": 1 - weight}, 200)
    assert used["a"] == pytest.approx(quota * weight, rel=0.05, abs=0.01)
    assert sum(used.values()) == pytest.approx(quota, rel=0.05)


def test_what_a_trial_can_not_use_goes_to_the_others() -> None:
    used = simulated(0.5, {"a": 1.0, "b": 0.05}, {"a": 0.25, "b": 0.75}, 100)
    assert used["b"] == pytest.approx(0.05, rel=0.01)
    assert used["a"] > 0.39
    assert sum(used.values()) <= 0.5 * 1.02


def test_a_trial_that_wakes_up_gets_its_part_within_two_periods() -> None:
    trials = {"a": Paced(1.0), "b": Paced(1.0, wanted=0.0)}
    open_period(trials, 0.5)
    assert trials["b"].allowance < trials["a"].allowance
    trials["b"].note(0.1 * PERIOD_S, 0.1 * PERIOD_S)
    trials["b"].close_period()
    trials["a"].allowance = trials["b"].allowance = 0.0
    open_period(trials, 0.5)
    assert trials["b"].allowance == pytest.approx(trials["a"].allowance)


def test_a_trial_that_only_waited_for_a_core_counts_as_one_that_wants_it() -> None:
    trial = Paced(1.0)
    trial.note(0.3 * PERIOD_S, PERIOD_S)
    trial.waited = 0.7 * PERIOD_S
    trial.close_period()
    assert trial.wanted == pytest.approx(1.0)


def test_what_was_used_too_much_is_taken_off_later() -> None:
    trials = {"a": Paced(1.0)}
    open_period(trials, 0.5)
    trials["a"].note(PERIOD_S, PERIOD_S)
    trials["a"].close_period()
    open_period(trials, 0.5)
    assert not trials["a"].may_run
