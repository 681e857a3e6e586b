"""What ``promote`` is trained and judged on: the families are apart, and the sweeps are those of the product's rule."""

import numpy as np
import pytest

from benchmarks.train_promote import made_up
from benchmarks.train_promote.families import Families
from benchmarks.train_promote.fixed_rules import RULES, Rule, makespan_at
from benchmarks.train_promote.sweeps import START, Seen, Sweep, noise_of
from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import NAMES, Floats
from controllers.policies.promote.odds import read
from controllers.policies.promote.promised import PROBES


def falling(trials: int, seed: int = 0) -> np.ndarray:
    """Return curves that never cross: the order is clear from the first part on."""
    ends = np.random.default_rng(seed).permutation(trials) / trials
    return np.asarray(ends[:, None] + 5.0 * np.exp(-np.arange(PARTS) / 5)[None, :])


def test_no_family_is_both_trained_on_and_judged_by() -> None:
    kinds = {
        purpose: {name.partition("+")[0] for name in Families().named(purpose)} for purpose in ("training", "judging")
    }
    assert kinds["judging"]
    assert not kinds["training"] & kinds["judging"]


@pytest.mark.parametrize("family", Families().named("judging"))
def test_the_recorded_curves_of_each_family_are_whole(family: str) -> None:
    sweep = Families().sweep(family, 3, 100)
    assert sweep.shape == (100, PARTS)
    assert np.isfinite(sweep).all()
    assert (Families().sweep(family, 3, 100) == sweep).all()
    assert np.ptp(sweep[:, -1]) > 0


@pytest.mark.parametrize("kind", made_up.KINDS)
def test_made_up_sweeps_are_whole_and_differ(kind: str) -> None:
    one, other = made_up.sweep(kind, 1, 20), made_up.sweep(kind, 2, 20)
    assert np.isfinite(one).all()
    assert not np.array_equal(one, other)


def test_noise_that_was_added_is_measured() -> None:
    noise = 0.05 * np.random.default_rng(1).normal(size=(30, PARTS))
    assert noise_of(falling(30)) < 0.01
    assert noise_of(falling(30) + noise) == pytest.approx(0.05, rel=0.2)


@pytest.mark.parametrize("slots", [1, 4, 16])
def test_a_sweep_ends_and_where_the_order_is_clear_it_finds_the_best_early(slots: int) -> None:
    outcome = Sweep(falling(40), slots, read().of).run(0.1)
    assert outcome.at(0.1).regret == 0.0
    assert outcome.at(0.1).makespan < 0.7


class Noted(Sweep):
    """Notes when each trial came to its first look."""

    def __init__(self, values: Floats, slots: int, most_active: int) -> None:
        super().__init__(values, slots, read().of, most_active)
        self.first: dict[int, float] = {}

    def _moves_on(self, trial: int, part: int) -> None:
        super()._moves_on(trial, part)
        self.first.setdefault(trial, self.now)


def test_the_last_trial_to_begin_shares_the_cores_with_all_that_run_like_the_others() -> None:
    sweep = Noted(falling(16), slots=16, most_active=4)
    sweep.run(0.0)
    assert [sweep.first[trial] for trial in range(PROBES, 16)] == pytest.approx([START + 0.08] * (16 - PROBES))


def test_a_promise_of_nothing_lost_trains_everything() -> None:
    end = Sweep(falling(10), 2, lambda found: np.full(len(found), 0.5)).run(0.0).at(0.0)
    assert (end.left, end.regret) == (0.0, 0.0)
    assert end.makespan >= 1.0


def test_what_a_decision_sees_is_told_with_what_came() -> None:
    seen = Sweep(falling(20), 4, read().of).run(0.0, every=1).seen
    assert all(one.features.shape == (len(one.better), len(NAMES)) for one in seen)
    assert any(one.better.any() for one in seen)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.line}, {rule.setting}")
def test_fixed_rules_find_the_best_where_the_order_is_clear(rule: Rule) -> None:
    end = rule.run(falling(100), 4)
    assert end.regret == 0.0
    assert 0.0 < end.makespan < 1.0


@pytest.mark.pytorch
def test_the_fitted_model_tells_the_better_from_the_worse() -> None:
    pytest.importorskip("torch")
    from benchmarks.train_promote.fitting import fit  # noqa: PLC0415 - torch may be missing

    chance, seen = np.random.default_rng(0), []
    for _ in range(60):
        features = chance.normal(size=(20, len(NAMES)))
        seen.append([Seen(features, features[:, 4] < -1.5)])
    model = fit({"made:plain": seen})
    told = model.of(chance.normal(size=(500, len(NAMES))) * 0 + np.eye(len(NAMES))[4] * -3.0)
    other = model.of(np.eye(len(NAMES))[4][None, :] * 3.0)
    assert told.min() > 0.5 > other.max()


def test_a_rule_takes_at_a_risk_what_lies_between_its_settings_but_for_those_beaten_in_both() -> None:
    points = [(40.0, 1.0), (20.0, 5.0), (30.0, 6.0)]
    assert makespan_at(3.0, points) == 30.0
    assert makespan_at(5.0, points) == 20.0
    assert makespan_at(0.5, points) is None
    assert makespan_at(7.0, points) is None
