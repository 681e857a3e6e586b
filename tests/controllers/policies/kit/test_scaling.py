"""What trials on unlike shares tell: how speed grows with cores, and how much trials of a node contend."""

import math
import random

import pytest

from controllers.core.model import TrialId
from controllers.policies.kit.measured_trials import MeasuredTrial
from controllers.policies.kit.scaling import CostOfStep, Scaling
from controllers.policies.kit.work_left import SweepMeasurements, scaling_of


def seen(power: float, contention: float, *, noise: float = 0.0, trials: int = 200) -> SweepMeasurements:
    """Return what is measured of trials of that scaling; ``noise`` is in the CPU seconds of each measurement."""
    chance = random.Random(7)  # noqa: S311 - draws noise
    found = {}
    for number in range(trials):
        costs = []
        for others, entitled in ((0, 8.0), (1, 4.0), (1, 6.0), (3, 2.0), (3, 6.0), (7, 1.0), (7, 4.0)):
            error = chance.gauss(0.0, noise)
            cost = (1 - power) * math.log(entitled) + math.log1p(contention) * others + number
            costs.append(CostOfStep(math.log(entitled), others, math.log(entitled) + error, cost + error))
        found[TrialId(f"t{number}")] = MeasuredTrial(costs=tuple(costs))
    return SweepMeasurements(found)


@pytest.mark.parametrize(("power", "contention"), [(1.0, 0.0), (0.8, 0.0), (1.0, 0.05), (0.7, 0.03), (1.1, 0.0)])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_power_and_contention_are_told_apart_though_cores_and_costs_share_their_errors(
    power: float, contention: float, noise: float
) -> None:
    found = scaling_of(seen(power, contention, noise=noise))
    assert found.power == pytest.approx(power, abs=0.04)
    assert found.contention == pytest.approx(contention, abs=0.015)


def test_nothing_is_claimed_before_trials_were_seen_on_unlike_shares() -> None:
    assert scaling_of(SweepMeasurements()) == Scaling(1.0, 0.0)
    once = MeasuredTrial(costs=(CostOfStep(0.0, 1, 0.0, 3.0),))
    assert scaling_of(SweepMeasurements({TrialId("a"): once})) == Scaling(1.0, 0.0)


def test_no_measurement_makes_the_power_extreme() -> None:
    assert scaling_of(seen(1.6, 0.0)).power == 1.2
    assert scaling_of(seen(0.1, 0.0)).power == 0.5
