"""Rules that end trials end those that the libraries themselves would end, at the same reports."""

from collections.abc import Callable
from functools import partial

import numpy as np
import optuna
import pytest
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, SuccessiveHalvingPruner

from benchmarks.train_promote.families import Families
from benchmarks.train_promote.stopping_rules import (
    Judge,
    OptunaHalving,
    OptunaHyperband,
    OptunaMedian,
    RayAsha,
    Stopping,
    stopped,
    study_of,
)
from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats

TRIALS, SLOTS = 30, 4


class Pruner:
    """One of Optuna's own pruners, as a study asks it."""

    def __init__(self, values: Floats, pruner: BasePruner) -> None:
        self.values = values
        sampler = optuna.samplers.RandomSampler(seed=0)
        self.study = optuna.create_study(pruner=pruner, sampler=sampler, study_name=study_of(values))
        self.asked = [self.study.ask() for _ in values]

    def over(self, trial: int, part: int) -> bool:
        """See ``Judge``."""
        one = self.asked[trial]
        one.report(float(self.values[trial, part - 1]), part)
        over = one.should_prune()
        if over:
            self.study.tell(one, state=optuna.trial.TrialState.PRUNED)
        return over

    def completes(self, trial: int) -> None:
        """See ``Judge``."""
        self.asked[trial].report(float(self.values[trial, -1]), PARTS)
        self.study.tell(self.asked[trial], float(self.values[trial].min()))


@pytest.mark.parametrize(
    ("rule", "pruner"),
    [
        (partial(OptunaHalving, first=None, eta=4), SuccessiveHalvingPruner),
        (
            partial(OptunaHalving, first=4, eta=2),
            partial(SuccessiveHalvingPruner, min_resource=4, reduction_factor=2),
        ),
        (partial(OptunaHyperband, first=1, eta=3, known=False), HyperbandPruner),
        (
            partial(OptunaHyperband, first=4, eta=2),
            partial(HyperbandPruner, min_resource=4, max_resource=PARTS, reduction_factor=2),
        ),
        (OptunaMedian, MedianPruner),
        (partial(OptunaMedian, warmup=8), partial(MedianPruner, n_warmup_steps=8)),
    ],
    ids=["halving", "halving-2", "hyperband", "hyperband-2", "median", "median-8"],
)
@pytest.mark.parametrize("family", ["noisy-evaluation", "boosted-trees+0.3"])
def test_trials_end_at_the_reports_where_optunas_own_pruner_ends_them(
    rule: Callable[[Floats], Judge], pruner: Callable[[], BasePruner], family: str
) -> None:
    values = Families().sweep(family, 7, TRIALS)
    made, _ = stopped(TRIALS, SLOTS, rule(values))
    assert len(set(made)) > 1, "nothing was ended"
    assert made == stopped(TRIALS, SLOTS, Pruner(values, pruner()))[0]


def test_defaults_are_those_of_the_installed_optuna() -> None:
    assert vars(MedianPruner()) | {"_n_startup_trials": 5, "_n_warmup_steps": 0} == vars(MedianPruner())
    assert vars(HyperbandPruner()) | {"_min_resource": 1, "_reduction_factor": 3} == vars(HyperbandPruner())
    assert vars(SuccessiveHalvingPruner()) | {"_reduction_factor": 4} == vars(SuccessiveHalvingPruner())


@pytest.mark.parametrize(
    ("ends", "parts"),
    [
        ([3.0, 1.0, 2.1, 1.5, 0.5], [PARTS, PARTS, 4, PARTS, PARTS]),
        ([1.0, 1.0], [PARTS, PARTS]),
        ([1.0, 1.1], [PARTS, 4]),
    ],
)
def test_ray_lets_the_first_at_a_rung_go_on_and_then_those_no_worse_than_the_quantile_before_them(
    ends: list[float], parts: list[int]
) -> None:
    made, _ = stopped(len(ends), 1, RayAsha(np.repeat(np.array(ends)[:, None], PARTS, axis=1), 4, 2))
    assert made == parts


def test_a_sweep_takes_what_its_trials_made_and_a_start_of_each() -> None:
    values = np.repeat(np.arange(4.0)[:, None], PARTS, axis=1)
    made, now = stopped(4, 1, RayAsha(values, 8, 2))
    assert made == [PARTS, 8, 8, 8]
    assert now == pytest.approx(1 + 3 * 8 / PARTS + 4 * 0.02)
    end = Stopping("Ray ASHA", "", partial(RayAsha, first=8, eta=2)).run(values, 1)
    assert end.makespan == pytest.approx(now / (4 * 1.02))
    assert end.regret == 0.0
