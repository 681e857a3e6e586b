"""What a replay says of the best model of a past sweep, under policies that end trials early."""

import random

import pytest

from controllers.core.model import TrialId
from controllers.lab.simulation.past_sweeps.best_kept import best_kept
from controllers.lab.simulation.past_sweeps.forecast import PolicyForecast, forecast
from controllers.lab.simulation.past_sweeps.recording import TargetCluster, record
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import CurvePoint, TrialSpec
from tests.controllers.lab.simulation.past_sweeps.past import past_sweep

SEEDS = 2


def replayed(late: bool, policy: str) -> tuple[float | None, PolicyForecast] | None:  # noqa: FBT001 - of the curves
    """Replay 24 trials of 20 reports; one that is bad up to the middle becomes the best where ``late``."""
    rng = random.Random(5)  # noqa: S311 - a sweep
    levels = [rng.uniform(1.0, 3.0) for _ in range(24)]

    def value(number: int, part: float) -> float:
        if late and number == 20:
            return 4.0 if part < 0.9 else 0.1
        return levels[number] + (1 - part) ** 2

    sweep = past_sweep(
        [
            TrialSpec(
                TrialId(f"t{number:02d}"),
                0.0,
                20.0,
                tuple(CurvePoint(float(step), value(number, step / 20)) for step in range(1, 21)),
                0.05,
            )
            for number in range(24)
        ]
    )
    recording = record(sweep, TargetCluster(sweep.nodes, Costs.free()))
    (found,) = forecast(recording, {policy: parse_policy(policy)}, SEEDS)
    kept = best_kept(sweep, found)
    return None if kept is None else (kept.missed_share, found)


def test_a_policy_that_trains_everything_has_nothing_to_miss() -> None:
    assert replayed(late=True, policy="promote") is None


@pytest.mark.parametrize(("late", "share"), [(True, 1.0), (False, 0.0)])
def test_a_model_that_gets_good_too_late_is_missed_and_others_are_not(late: bool, share: float) -> None:  # noqa: FBT001 - of the curves
    found = replayed(late, "promote:finish=fast,interval=1")
    assert found is not None
    missed, forecast_ = found
    assert missed == share
    assert len(forecast_.missed) == SEEDS
